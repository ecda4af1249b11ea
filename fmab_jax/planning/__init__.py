"""Answers what to run: candidates within budgets, and a race that finds one close to the best."""
