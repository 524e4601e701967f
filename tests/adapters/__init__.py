"""One suite for every adapter, on the real packages, each in an environment that has only its extra.

`make test-adapters` runs it. A subject (`subjects/<adapter>.py`) says how its framework plays the scenarios; the cases
(`test_cases.py`) start runs, answer and kill, and know nothing of frameworks.
"""
