"""What belongs to others: names that torch's own compiler gives its settings, its world of sizes, the caches of sympy."""
