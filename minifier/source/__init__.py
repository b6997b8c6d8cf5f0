"""Failures that no single graph shows: the user's own Python is cut, statement by statement."""
