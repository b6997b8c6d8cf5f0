"""How sessions are recorded: as which run, through a spool, and a night as one command."""
