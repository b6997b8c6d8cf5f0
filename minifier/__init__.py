"""Minimizes a failure and names the guilty stage."""
