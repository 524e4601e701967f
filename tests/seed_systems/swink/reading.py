"""A process that reads a session's interrupt again and again: `python -m ... URL-OR-FOLDER NAMESPACE SESSION ROUNDS`.

Prints how often it read, and every interrupt whose parts do not belong together. A folder it reads as swink does, which
knows nothing of our lock.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from functools import partial

from broker import AsyncBroker, InterruptState
from broker.interop.swink import BrokerStore, FileStore, read_interrupt


def is_mixed(state: InterruptState) -> bool:
    """Whether an interrupt has parts of more than one: each says its number in all of them."""
    number = str(state.interrupted_at)
    calls = {one.tool_call_id for one in state.pending_tool_calls}
    return {state.system_prompt.strip(), *calls} != {number}


async def read(load: Callable[[], Awaitable[InterruptState | None]], rounds: int) -> None:
    seen: set[int | None] = set()
    mixed: list[int | None] = []
    for _ in range(rounds):
        state = await load()
        if state is not None:
            seen.add(state.interrupted_at)
            mixed += [state.interrupted_at] if is_mixed(state) else []
    sys.stdout.write(json.dumps({"seen": len(seen), "mixed": mixed}) + "\n")


async def main(where: str, namespace: str, session: str, rounds: str) -> None:
    path = FileStore(where).path(session)

    async def as_swink() -> InterruptState:
        return read_interrupt(await asyncio.to_thread(path.read_bytes))

    if not namespace:
        return await read(as_swink, int(rounds))
    async with AsyncBroker(where, namespace=namespace) as broker:
        await read(partial(BrokerStore(broker).load, session), int(rounds))
    return None


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
