"""The dashboard: what happened over many nights, as one page that needs nothing else or as a small local server."""
