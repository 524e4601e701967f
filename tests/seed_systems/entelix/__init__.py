"""entelix's rows: `E1` to `E20`."""
