# Generated from broker/interop/adk/_async/__init__.py by tests/tools/unasync.py (make sync): do not edit.
"""What hosts and workers do with a CodeAct agent, for asyncio. The blocking twin is generated from it."""
