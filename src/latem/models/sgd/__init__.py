"""The ranking engine: loop, exact forms, compiled kernels, checkpoints, best epoch."""
