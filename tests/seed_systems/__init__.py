"""Every row of docs/reference/seed-systems.md is shown by a test that is marked `row("E1", …)`."""
