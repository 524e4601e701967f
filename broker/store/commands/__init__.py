"""Every operation as a value: which script, which keys, which arguments, and what the reply means. Nothing here waits."""
