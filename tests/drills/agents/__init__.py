"""Programs that the drills start as processes of their own."""
