"""The features that programs are drawn from, one table per part of the language or the library."""
