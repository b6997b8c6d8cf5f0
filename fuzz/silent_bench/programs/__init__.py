"""The programs of SilentBench, one file for each class of fault; ordinary tests that compare nothing."""
