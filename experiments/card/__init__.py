"""Where an algorithm stands: suites with a version, standings of what is shipped, and one card."""
