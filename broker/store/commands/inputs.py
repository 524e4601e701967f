"""Input for a run that has begun: said to it, and read back in order."""

from collections.abc import Sequence
from typing import Any

from ...core.digest import content_digest
from ...core.limits import JSON
from ...core.outcomes import Accepted, Full, Outcome, Replayed
from ...core.wire import decode, encode
from ..keys import Partition
from .runs import refusal
from .values import About, Command, Item, Read, Reply, pairs, text


def say(
    p: Partition, run: str, session: str, message: JSON, *, op: str, by: bytes, most: int, most_bytes: int
) -> Command[Outcome]:
    """Keeps one input behind those that were said before."""
    data = encode({"input": message}, most=most_bytes, field="message")

    def decode_said(_: int, reply: Reply) -> Outcome:
        match text(reply[0]):
            case "accepted":
                return Accepted(run_id=run, session_id=session)
            case "replayed":
                return Replayed(run_id=run, session_id=session)
            case "full":
                return Full(reason=f"{int(reply[1])} inputs were said to the run, and it takes no more")
            case _:
                return refusal(reply, run)

    keys = (p.key("run", run), p.key("said", run), p.key("history", session), p.key("retention"))
    item = Item(keys, (run, op, by, content_digest(data), data, most), About(session, run, (), op))
    return Command("say", p, (item,), decode_said, confirm=True)


def read_said(p: Partition, run: str) -> Read[tuple[JSON, ...]]:
    """What was said to a run, oldest first."""
    key = p.key("said", run)

    def decode_all(replies: Sequence[Any]) -> tuple[JSON, ...]:
        found = {int(name): value for name, value in pairs(replies[0]).items() if name.isdecimal()}
        return tuple(decode(found[place], key=key)["input"] for place in sorted(found))

    return Read((("HGETALL", key),), decode_all)
