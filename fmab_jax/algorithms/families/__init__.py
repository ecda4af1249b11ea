"""The loops that algorithms share."""
