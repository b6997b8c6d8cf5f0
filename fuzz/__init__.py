"""Looks for failures in generated programs: transforms of functions, and state that changes between calls."""
