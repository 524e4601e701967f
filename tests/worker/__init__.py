"""The worker from outside: real processes, and workers in this one."""
