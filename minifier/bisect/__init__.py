"""Which step of a compiler is to blame: the culprit of a failing case."""
