"""Fuzzers: random programs under transforms, and random changes of what guards protect."""
