"""Makes a failure small and names the guilty stage."""
