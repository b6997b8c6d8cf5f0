"""A case run to its first failing call."""
