"""`python -m plumbline`: the same as the command `plumbline`."""

from .command import main

if __name__ == "__main__":
    main()
