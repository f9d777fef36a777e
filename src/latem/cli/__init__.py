"""The command line: one file per command. Each parses, calls a workflow and prints."""

from latem.cli.main import app, main

__all__ = ["app", "main"]
