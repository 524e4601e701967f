"""The short measures: the codec and the digests, and every operation alone, on the client and on the server."""
