"""LangGraph and LangChain: a compiled graph that parks by itself, and that any worker goes on with.

    graph = resumable(builder.compile(checkpointer=saver), name="support")
    worker.add("support", graph.resume)

The state of a thread stays in the graph's own checkpointer, which all workers must reach; the broker keeps the pause,
its questions and their answers. It needs the extra `langgraph`.
"""

from .._contract import Package, require

require("langgraph", "The adapter of LangGraph", Package("langgraph", (1, 2), 2))

from .graph import Resumable, effect_key, resumable  # noqa: E402 - only once the package is known to be there

__all__ = ["Resumable", "effect_key", "resumable"]
