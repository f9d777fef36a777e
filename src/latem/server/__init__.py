"""The server: REST, the Open Inference Protocol, and the explorer page, over the workflows.

No learning code lives here. `app.create_app` puts everything together, `run.serve` starts it.
"""
