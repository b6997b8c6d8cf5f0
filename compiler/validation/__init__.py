"""One program at every level of the compiler, for tests and fuzzers."""
