"""Agent frameworks and job systems whose runs the broker keeps: one module each, imported by its users only."""

__all__: list[str] = []
