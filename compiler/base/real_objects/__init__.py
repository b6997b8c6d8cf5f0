"""What may be asked of the objects of the program without running its code."""
