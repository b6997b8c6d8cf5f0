"""The minifier: reduces a failing program and names the first wrong stage."""
