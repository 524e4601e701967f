"""A process that reads a session's interrupt again and again: `python -m ... URL-OR-FOLDER NAMESPACE SESSION ROUNDS`.

Prints how often it read, and every interrupt whose parts do not belong together.
"""

import asyncio
import json
import sys

from broker import AsyncBroker, InterruptState
from broker.interop.swink import BrokerStore, FileStore, InterruptStore


def is_mixed(state: InterruptState) -> bool:
    """Whether an interrupt has parts of more than one: each says its number in all of them."""
    number = str(state.interrupted_at)
    calls = {one.tool_call_id for one in state.pending_tool_calls}
    return {state.system_prompt.strip(), *calls} != {number}


async def read(store: InterruptStore, session: str, rounds: int) -> None:
    seen: set[int | None] = set()
    mixed: list[int | None] = []
    for _ in range(rounds):
        state = await store.load(session)
        if state is not None:
            seen.add(state.interrupted_at)
            mixed += [state.interrupted_at] if is_mixed(state) else []
    sys.stdout.write(json.dumps({"seen": len(seen), "mixed": mixed}) + "\n")


async def main(where: str, namespace: str, session: str, rounds: str) -> None:
    if not namespace:
        return await read(FileStore(where), session, int(rounds))
    async with AsyncBroker(where, namespace=namespace) as broker:
        await read(BrokerStore(broker), session, int(rounds))
    return None


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
