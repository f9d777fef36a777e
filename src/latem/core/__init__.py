"""Files, threads, messages, progress: what knows nothing of zero-shot learning."""
