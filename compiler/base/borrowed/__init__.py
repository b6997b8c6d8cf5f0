"""What belongs to others: names that torch's own compiler gives its settings, the caches of sympy."""
