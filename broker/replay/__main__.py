"""`python -m broker.replay`: one process of a replay, started by its parent. See `process`."""

from .process import main

if __name__ == "__main__":
    main()
