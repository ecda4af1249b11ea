"""Grids of configurations, kept in a store."""
