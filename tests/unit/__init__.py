"""The pure floors, without a server; under two seconds in all."""
