"""Histories of calls and changes of state."""
