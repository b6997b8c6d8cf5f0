"""Graphs of a failing call, and parts of them as cases."""
