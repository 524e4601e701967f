"""Ways to do one lifecycle: the hand-written floors, and the broker."""
