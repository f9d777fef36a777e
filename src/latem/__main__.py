"""`python -m latem`."""

from latem.cli import main

main()
