"""Units: pieces of code with their specialisations, how calls reach them, and errors of ours told with them."""
