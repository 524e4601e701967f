"""Every operation as a value: which script, keys and arguments, and what the reply means. Nothing here waits."""
