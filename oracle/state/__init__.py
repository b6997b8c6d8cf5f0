"""What a call can reach and change: found, saved, put back, and replaced by copies for reference runs."""
