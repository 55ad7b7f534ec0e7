"""`python -m wingspan`: the shell without its script, where the package was not installed."""

from wingspan.cli import main

if __name__ == "__main__":
    main()
