"""Functions, attributes, instances, classes and exceptions."""
