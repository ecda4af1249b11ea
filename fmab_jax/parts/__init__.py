"""What a user may replace, one kind a folder or file, and the registry that finds it."""
