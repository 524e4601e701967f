"""Drills: a fleet of processes on a real server, and what is killed, stopped, raced or lied to about the time."""
