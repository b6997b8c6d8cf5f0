"""The database below the store: its tables, how it is reached, and what is written and read in one go."""
