"""The gate's rules: plain functions over what was seen, without a database."""
