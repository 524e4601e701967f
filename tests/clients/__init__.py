"""The clients: every call of the API with everything it can come to, in both colours."""
