"""The noise meter: how many digits a program keeps, and which of its lines lose the others."""
