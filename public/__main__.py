"""`python -m plumbline`: the same as the command `plumbline`."""

from .command import main

main()
