"""The HTTP gateway: a real one on a real port, in front of a real server."""
