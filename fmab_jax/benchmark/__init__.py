"""Suites with a version, standings of what is shipped, and a card for anybody's algorithm."""
