"""Random ATen programs, several in one compile: their data, how they are drawn, tried, and made smaller."""
