"""What a user would pick instead, each in an environment of its own, beside the floor and the broker."""
