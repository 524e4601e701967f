"""What hosts and workers do with a CodeAct agent, for asyncio. The blocking twin is generated from it."""
