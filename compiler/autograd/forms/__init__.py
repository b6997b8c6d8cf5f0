"""The forms of a captured graph: what each consists of, how it is made and kept, and how its stages are compared."""
