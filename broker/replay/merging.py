"""Joins consecutive tool-calling turns of recorded runs to longer ones: for the many recordings of one call a turn."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..core.limits import JSON
from .transcripts import Message, Transcript


def merge_turns(transcript: Transcript, most: int) -> Transcript:
    """The run with turns of up to `most` calls, made of turns that follow one another with nothing said in between.

    A turn that has no result for one of its calls, one that has more calls already, and one that says something other
    than text stay as they are. Safe to repeat.
    """
    if most < 2:  # noqa: PLR2004 - one call a turn is what there is
        return transcript
    made: list[Message] = []
    group: list[Sequence[Message]] = []
    for part in _parts(transcript):
        calls = _count(part)
        if not calls or sum(map(_count, group)) + calls > most:
            made += _joined(group)
            group = []
        if calls:
            group.append(part)
        else:
            made += part
    return replace(transcript, messages=(*made, *_joined(group)))


def _parts(transcript: Transcript) -> Iterable[Sequence[Message]]:
    """The messages one by one, but a turn that may be joined together with its results."""
    messages, at = transcript.messages, 0
    while at < len(messages):
        size = 1 + len(transcript.turns.get(at, ()))
        joins = (
            size > 1 and size == 1 + len(messages[at]["tool_calls"]) and _is_text(messages[at].get("content"))
        )
        yield messages[at : at + (size if joins else 1)]
        at += size if joins else 1


def _is_text(content: JSON) -> bool:
    return content is None or isinstance(content, str)


def _count(part: Sequence[Message]) -> int:
    """How many calls a turn with its results holds; 0 for a single message."""
    return len(part) - 1


def _joined(group: Sequence[Sequence[Message]]) -> list[Message]:
    """One turn of several: the keys of the first, the calls of all, what was said in between as one text."""
    if len(group) < 2:  # noqa: PLR2004
        return [message for part in group for message in part]
    turns = [part[0] for part in group]
    calls = [call for turn in turns for call in turn["tool_calls"]]
    joined = {**turns[0], "tool_calls": calls}
    if any("content" in turn for turn in turns):
        joined["content"] = "\n".join(turn["content"] for turn in turns if turn.get("content")) or None
    return [joined, *(message for part in group for message in part[1:])]
