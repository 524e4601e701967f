"""What a run has open on AG-UI's stream: messages, calls, reasoning, steps; opened, continued and closed, or in chunks.

An item belongs to the invocation that opened it, None for the main agent. Chunks are a short form: they open an item
in their owner's lane, of which there is one, and whatever else comes in that lane closes it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from ...core.limits import JSON
from .owners import Broken
from .rules import Rule


class Kind(StrEnum):
    """What can be open."""

    MESSAGE = "message"
    CALL = "tool call"
    THOUGHT = "reasoning message"
    SPAN = "span of reasoning"
    STEP = "step"
    ACTIVITY = "activity"


OPENS: Final = {
    "TEXT_MESSAGE_START": Kind.MESSAGE,
    "TOOL_CALL_START": Kind.CALL,
    "REASONING_MESSAGE_START": Kind.THOUGHT,
    "REASONING_START": Kind.SPAN,
    "STEP_STARTED": Kind.STEP,
}
CONTINUES: Final = {
    "TEXT_MESSAGE_CONTENT": Kind.MESSAGE,
    "TOOL_CALL_ARGS": Kind.CALL,
    "REASONING_MESSAGE_CONTENT": Kind.THOUGHT,
}
CLOSES: Final = {
    "TEXT_MESSAGE_END": Kind.MESSAGE,
    "TOOL_CALL_END": Kind.CALL,
    "REASONING_MESSAGE_END": Kind.THOUGHT,
    "REASONING_END": Kind.SPAN,
    "STEP_FINISHED": Kind.STEP,
}
CHUNKS: Final = {
    "TEXT_MESSAGE_CHUNK": Kind.MESSAGE,
    "TOOL_CALL_CHUNK": Kind.CALL,
    "REASONING_MESSAGE_CHUNK": Kind.THOUGHT,
}
ITEMS: Final = {**OPENS, **CONTINUES, **CLOSES}
RUN_WIDE: Final = frozenset({"RUN_STARTED", "RUN_FINISHED", "RUN_ERROR", "MESSAGES_SNAPSHOT"})
"""Events that close the chunks of everybody."""
ASIDE: Final = frozenset(
    {"RAW", "ACTIVITY_SNAPSHOT", "ACTIVITY_DELTA", "REASONING_ENCRYPTED_VALUE", "SUBAGENT_STARTED"}
)
"""Events that close no chunks."""
SAID: Final[dict[Kind, dict[str, str | None]]] = {
    Kind.MESSAGE: {"role": "assistant", "name": None},
    Kind.CALL: {"toolCallName": None, "parentMessageId": None},
}
"""What opens an item says of it for good, with what its absence says."""
IDENTITY: Final = {Kind.CALL: "toolCallId", Kind.STEP: "stepName"}
"""The field that names an item, where it is not `messageId`."""


@dataclass(slots=True)
class Item:
    """One thing that was opened in the run; `said` is None where only its owner is known."""

    kind: Kind
    id: str
    owner: str | None
    said: dict[str, JSON] | None = field(default=None, repr=False)
    is_open: bool = True
    is_chunked: bool = False

    def __str__(self) -> str:
        """Its kind and its id."""
        return f"{self.kind} {self.id}"


@dataclass(slots=True)
class Streams:
    """The items of one run. `activities` outlive it: they are messages of the thread."""

    activities: dict[str, Item]
    _items: dict[tuple[Any, ...], Item] = field(default_factory=dict)
    _lanes: dict[str | None, Item] = field(default_factory=dict)
    _calls: dict[str, bool] = field(default_factory=dict)

    def follow(self, event: Mapping[str, Any]) -> Iterator[Broken]:
        """What is wrong with an event where it stands."""
        kind = event["type"]
        if kind in CHUNKS:
            yield from self._chunk(CHUNKS[kind], event)
            return
        self._end_lanes(kind, event)
        if kind in OPENS:
            yield from self._open(OPENS[kind], event)
        elif kind in CONTINUES:
            yield from self._go_on(CONTINUES[kind], event)
        elif kind in CLOSES:
            yield from self._go_on(CLOSES[kind], event, closes=True)
        elif kind == "TOOL_CALL_RESULT" and event.get("toolCallId") in self._calls:
            self._calls[event["toolCallId"]] = True
        elif kind == "MESSAGES_SNAPSHOT":
            self._learn(event.get("messages", ()))
        elif kind in {"ACTIVITY_SNAPSHOT", "ACTIVITY_DELTA"}:
            yield from self._activity(event)

    @property
    def left_open(self) -> list[Item]:
        """What is open and does not close by itself."""
        return [item for item in self._items.values() if item.is_open and not item.is_chunked]

    @property
    def unanswered(self) -> list[str]:
        """The calls of the run that have no result, in order."""
        return [call for call, is_answered in self._calls.items() if not is_answered]

    def _open(self, kind: Kind, event: Mapping[str, Any], *, is_chunked: bool = False) -> Iterator[Broken]:
        name = event[IDENTITY.get(kind, "messageId")]
        owner = self._owner(kind, event)
        said = {key: event.get(key, absent) for key, absent in SAID.get(kind, {}).items()}
        key = _key(kind, name, owner)
        known = self._items.get(key)
        if known is not None and known.is_open:
            yield Rule.ALREADY_OPEN, f"{known} is open"
            return
        if known is not None and known.owner != owner:
            yield Rule.OWNER, f"{known} is {known.owner or 'the main agent'}'s"
        elif known is not None and known.said not in (None, said):
            yield Rule.REOPENED_OTHERWISE, f"{known} said otherwise when it was opened first"
        parent = self._items.get((Kind.MESSAGE, event.get("parentMessageId"))) if kind is Kind.CALL else None
        if parent is not None and parent.owner != owner:
            yield Rule.OWNER, f"{kind} {name} is of {parent}, which is {parent.owner or 'the main agent'}'s"
        item = self._items[key] = Item(kind, name, owner, said, is_chunked=is_chunked)
        if is_chunked:
            self._lanes[owner] = item
        if kind is Kind.CALL:
            self._calls.setdefault(name, False)

    def _owner(self, kind: Kind, event: Mapping[str, Any]) -> str | None:
        """Who opens an item: the tag says so, and a call without one belongs to its message's owner."""
        if kind is Kind.CALL and "subagentRunId" not in event:
            parent = self._items.get((Kind.MESSAGE, event.get("parentMessageId")))
            return None if parent is None else parent.owner
        owner: str | None = event.get("subagentRunId")
        return owner

    def _go_on(self, kind: Kind, event: Mapping[str, Any], *, closes: bool = False) -> Iterator[Broken]:
        name, tag = event[IDENTITY.get(kind, "messageId")], event.get("subagentRunId")
        item = self._items.get(_key(kind, name, tag))
        if item is None or not item.is_open:
            others = [one for one in self.left_open if (one.kind, one.id) == (kind, name)]
            if others:  # a step of another owner
                yield Rule.OWNER, f"{others[0]} is {others[0].owner or 'the main agent'}'s"
            else:
                yield Rule.NOT_OPEN, f"{kind} {name} is not open"
            return
        if tag is not None and tag != item.owner:
            yield Rule.OWNER, f"{item} is {item.owner or 'the main agent'}'s, not {tag}'s"
        item.is_open = not closes

    def _chunk(self, kind: Kind, event: Mapping[str, Any]) -> Iterator[Broken]:
        name, tag = event.get(IDENTITY.get(kind, "messageId")), event.get("subagentRunId")
        open_ = [item for item in self._lanes.values() if item.kind is kind]
        if name is not None:
            meant = [item for item in open_ if item.id == name]
        elif tag is not None or any(item.owner is None for item in open_):
            meant = [item for item in open_ if item.owner == tag]
        else:
            meant = open_
        if len(meant) > 1:
            yield Rule.CHUNK_AMBIGUOUS, f"it could go on with any of {', '.join(map(str, meant))}"
        elif meant:
            yield from _repeated(meant[0], event, tag)
        elif name is None or (kind is Kind.CALL and "toolCallName" not in event):
            missing = "toolCallName" if name is not None else IDENTITY.get(kind, "messageId")
            yield Rule.FIRST_CHUNK, f"{missing} is missing, and no {kind} is open that this could go on with"
        else:
            self._end(self._owner(kind, event))
            yield from self._open(kind, event, is_chunked=True)

    def _end_lanes(self, kind: str, event: Mapping[str, Any]) -> None:
        """Closes the chunks that cannot go on: those of the event's owner, and what the event itself names."""
        if kind in ASIDE:
            return
        ended, of = [event.get("subagentRunId")], ITEMS.get(kind)
        if kind in RUN_WIDE:
            ended = list(self._lanes)
        elif of is not None:
            name = event[IDENTITY.get(of, "messageId")]
            known = self._items.get((of, name))
            if kind in OPENS:
                ended = [self._owner(of, event)]
            elif known is not None and ended == [None]:
                ended = [known.owner]
            ended += [item.owner for item in self._lanes.values() if (item.kind, item.id) == (of, name)]
        for owner in ended:
            self._end(owner)

    def _end(self, owner: str | None) -> None:
        item = self._lanes.pop(owner, None)
        if item is not None:
            item.is_open = False

    def _learn(self, messages: list[dict[str, Any]]) -> None:
        """A snapshot tells whose each message is, and each call in it."""
        kinds = {"reasoning": Kind.THOUGHT, "activity": Kind.ACTIVITY}
        for message in messages:
            owner, kind = message.get("subagentRunId"), kinds.get(message["role"], Kind.MESSAGE)
            item = Item(kind, message["id"], owner, is_open=False)
            if kind is Kind.ACTIVITY:
                self.activities[item.id] = item
                continue
            self._items.setdefault((kind, item.id), item)
            for call in message.get("toolCalls", ()):
                self._items.setdefault(
                    (Kind.CALL, call["id"]), Item(Kind.CALL, call["id"], owner, is_open=False)
                )

    def _activity(self, event: Mapping[str, Any]) -> Iterator[Broken]:
        name, tag = event["messageId"], event.get("subagentRunId")
        known = self.activities.get(name)
        is_new = event["type"] == "ACTIVITY_SNAPSHOT" and event.get("replace") is not False
        if is_new or (known is None and event["type"] == "ACTIVITY_SNAPSHOT"):
            self.activities[name] = Item(Kind.ACTIVITY, name, tag)
        elif known is None:
            yield Rule.NO_BASELINE, f"activity {name} has no snapshot before"
        elif tag is not None and known.owner != tag:
            yield Rule.OWNER, f"{known} is {known.owner or 'the main agent'}'s, not {tag}'s"


def _key(kind: Kind, name: str, owner: str | None) -> tuple[Any, ...]:
    """Steps are their owner's; everything else is known by its id alone."""
    return (kind, owner, name) if kind is Kind.STEP else (kind, name)


def _repeated(item: Item, event: Mapping[str, Any], tag: str | None) -> Iterator[Broken]:
    if tag is not None and tag != item.owner:
        yield Rule.OWNER, f"{item} is {item.owner or 'the main agent'}'s, not {tag}'s"
    for key, said in (item.said or {}).items():
        if said is not None and event.get(key, said) != said:
            yield Rule.CHUNK_CONFLICT, f"{item} said another {key} first"
