"""Files, threads, messages, progress: everything that knows nothing about zero-shot learning."""
