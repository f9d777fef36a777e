"""The paper's tables and figures as data, and a runner that makes them.

`tables/*.toml` hold the published numbers, `protocols.toml` how each of ours comes about.
"""
