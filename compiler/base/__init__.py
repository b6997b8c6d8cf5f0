"""What every part of the compiler uses: errors, options, events. No tensors and no graphs; imports nothing of ours."""
