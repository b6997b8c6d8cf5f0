"""A sweep over all of torch's operators and modules, in many contexts, each compared with eager."""
