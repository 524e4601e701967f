"""Durable pauses for agent runs."""
