"""What torch's own compiler calls its settings."""
