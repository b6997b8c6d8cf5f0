"""What a call can reach and change: how it is found, saved, restored, and replaced for reference runs."""
