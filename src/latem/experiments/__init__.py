"""The paper's tables and figures as data, and a runner that makes them.

`tables/*.toml` hold the published numbers; `protocols.toml` says how each of ours is made.
"""
