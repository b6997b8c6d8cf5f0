"""Histories of results: what eager would visit, keep and free where a compiled graph is one step for all of them."""
