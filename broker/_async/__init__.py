"""The clients and loops, written once with async/await; the blocking twin in `_sync` is generated from here."""
