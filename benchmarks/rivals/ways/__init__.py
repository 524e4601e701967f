"""One module for each rival, in the form of `benchmarks.variants`: imported by the rival's own interpreter only."""
