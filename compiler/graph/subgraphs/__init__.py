"""Subgraphs: calls that run captured functions as often as the data says (`cond`, `while_loop`, `scan`, `map`)."""
