"""What a campaign has reached, and how it is led to where new behaviour appears."""
