"""What the server answers, one module per kind of question."""
