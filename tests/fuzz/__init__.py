"""Fuzzing of every reader: `make fuzz`, or `PYTHONPATH=src:tests python -m fuzz --help`."""
