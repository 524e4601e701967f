"""Wire version 1, frozen byte for byte. Vectors are added by `python -m tests.golden.make`, never edited."""
