"""The agents of the recipes, as subjects of the adapters' suite: frameworks without an adapter."""
