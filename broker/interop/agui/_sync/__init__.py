# Generated from broker/interop/agui/_async/__init__.py by tests/tools/unasync.py (make sync): do not edit.
"""What AG-UI needs of a broker: hand-written for `Broker`; the blocking twin beside it is made from it."""
