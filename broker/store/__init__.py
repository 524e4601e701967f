"""The shape of things in Redis: key names, scripts, commands as values, connecting. Nothing here waits."""
