"""The four systems whose pauses the broker carries, each with its own shapes: `entelix`, `swink`, `adk`, `agui`.

`approval` is what their approval policies say together.
"""
