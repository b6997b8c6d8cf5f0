"""The reduction of one failing graph."""
