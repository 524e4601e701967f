"""The concepts, one a file, from outside, as they are meant to be used. Read them in the order of their numbers."""
