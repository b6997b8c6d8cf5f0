"""How good a suite is at noticing faults of a compiler: faults are planted, and each test runs once more with each."""
