"""How-tos of frameworks that have no adapter of their own, on the real packages."""
