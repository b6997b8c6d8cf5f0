"""The ground floor of the compiler: no tensor, no IR; imports nothing of ours."""
