"""The tests of real packages, run plainly and judged: what `plumbline projects` does."""
