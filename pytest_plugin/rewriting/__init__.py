"""Test files whose code is changed before it runs."""
