"""The judge at work: the compilers under test, the boundaries, and the interception of a user's calls."""
