"""What bounds a test or a run: time, budgets of compiling, known failures, the death of a worker."""
