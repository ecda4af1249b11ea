"""Many trials of one configuration."""
