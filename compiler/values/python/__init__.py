"""Python's own kinds of values: containers, objects, and what stands on both."""
