"""What belongs to others: names of torch's settings, its world of sizes, the caches of sympy."""
