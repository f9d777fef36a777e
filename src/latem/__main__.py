"""`python -m latem`."""

from latem.cli import app

app()
