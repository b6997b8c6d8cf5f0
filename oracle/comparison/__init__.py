"""Two runs of one call compared: what differs in which aspect, apart from values that rounding may explain."""
