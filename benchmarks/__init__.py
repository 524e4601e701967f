"""What the broker costs beside Redis by hand, measured in interleaved rounds: `python -m benchmarks`."""
