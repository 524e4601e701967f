# Generated from broker/_async/__init__.py by tests/tools/unasync.py (make sync): do not edit.
"""The clients and loops, written once with async/await; the blocking twin in `_sync` is generated from here."""
