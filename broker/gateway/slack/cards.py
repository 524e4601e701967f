"""What is shown in Slack. What an agent wrote is plain text: it becomes no markup, no mention, no link."""

import json
from typing import Any, Final

from ...core.answers import AnswerKind, Edit, Reject
from ...core.records import InterruptRecord
from ...core.states import Settlement

Block = dict[str, Any]

MOST_TEXT: Final = 2900
"""Slack takes 3,000 characters in a text."""
MOST_SHORT: Final = 150
_BUTTONS: Final = (
    (AnswerKind.APPROVE, "Approve", "primary"),
    (AnswerKind.EDIT, "Edit…", None),
    (AnswerKind.REJECT, "Reject…", "danger"),
)  # fmt: skip


def plain(text: str, most: int = MOST_TEXT) -> Block:
    """A text that Slack shows as it is."""
    shown = text if len(text) <= most else f"{text[: most - 1]}…"
    return {"type": "plain_text", "text": shown or " ", "emoji": False}


def escaped(text: str) -> str:
    """A text for the line of a notification, where Slack reads three characters as its own."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def arguments(record: InterruptRecord) -> str:
    """The arguments of what would run, readable."""
    action = record.interrupt.action
    return json.dumps(action.arguments, indent=2, ensure_ascii=False) if action is not None else ""


def title(record: InterruptRecord) -> str:
    """What it is about, in a line."""
    action = record.interrupt.action
    return f"{record.agent} asks: {action.tool}" if action is not None else f"{record.agent} asks"


def message(record: InterruptRecord, inbox: str | None) -> dict[str, Any]:
    """The card of an interrupt as it is now: with buttons while it is open, with how it ended afterwards."""
    blocks = _about(record)
    if record.state is Settlement.OPEN:
        blocks += _offered(record, inbox)
    else:
        blocks.append({"type": "section", "text": plain(ended(record))})
    return {
        "text": escaped(title(record))[:MOST_SHORT], "blocks": blocks, "parse": "none", "link_names": False,
        "unfurl_links": False, "unfurl_media": False,
    }  # fmt: skip


def _about(record: InterruptRecord) -> list[Block]:
    asked = record.interrupt
    blocks: list[Block] = [{"type": "header", "text": plain(title(record), MOST_SHORT)}]
    if asked.message:
        blocks.append({"type": "section", "text": plain(f"The agent says: {asked.message}")})
    if asked.action is not None:
        blocks.append({"type": "section", "text": plain(arguments(record))})
    facts = [asked.kind.label]
    facts += [f"queue {record.queue}", f"session {record.session_id}"]
    if record.deadline is not None:
        facts.append(f"until {record.deadline:%Y-%m-%d %H:%M} UTC")
    blocks.append({"type": "context", "elements": [plain(" · ".join(facts), MOST_TEXT)]})
    return blocks


def _offered(record: InterruptRecord, inbox: str | None) -> list[Block]:
    """The buttons; where not everything can be shown, only the way to where it can."""
    offered = record.interrupt.offered
    fits = len(arguments(record)) <= MOST_TEXT and record.problem is None
    value = f"{record.id} {record.digest}"
    buttons: list[Block] = []
    for kind, label, style in _BUTTONS if fits else ():
        if kind in offered:
            button = {"type": "button", "action_id": f"broker_{kind}", "text": plain(label), "value": value}
            buttons.append({**button, **({"style": style} if style else {})})
    if inbox:
        link = f"{inbox.rstrip('/')}/interrupts/{record.id}"
        buttons.append({"type": "button", "action_id": "broker_open", "text": plain("Open"), "url": link})
    blocks: list[Block] = []
    if not fits:
        blocks.append({"type": "section", "text": plain("This is too long to be decided here: open it.")})
    return [*blocks, {"type": "actions", "elements": buttons}] if buttons else blocks


def ended(record: InterruptRecord) -> str:
    """How an interrupt ended, in a sentence."""
    how = record.resolution
    if how is None:
        return f"It is {record.state}."
    who = how.by.id if how.by is not None else "nobody"
    match how.answer:
        case None:
            return (
                "Nobody answered in time."
                if record.state is Settlement.EXPIRED
                else f"It was {record.state}."
            )
        case Reject(reason=reason):
            return f"Rejected by {who}: {reason}" if reason else f"Rejected by {who}."
        case Edit():
            return f"Approved by {who}, with other arguments."
        case answer:
            word = {"approve": "Approved"}.get(answer.kind, f"Answered ({answer.kind})")
            return f"{word} by {who}."


def modal(record: InterruptRecord, kind: AnswerKind, where: str) -> dict[str, Any]:
    """The form of an edit, or of a rejection with its reason."""
    if kind is AnswerKind.EDIT:
        label, name, start = "Arguments, as JSON", "Edit", arguments(record)
    else:
        label, name, start = "Why? The agent is told this.", "Reject", ""
    element: Block = {"type": "plain_text_input", "action_id": "said", "multiline": True, "max_length": 3000}
    if start:
        element["initial_value"] = start
    return {
        "type": "modal", "callback_id": f"broker_{kind}", "private_metadata": where,
        "title": plain(name, 24), "submit": plain(name, 24), "close": plain("Back", 24),
        "blocks": [
            {"type": "section", "text": plain(title(record), MOST_SHORT)},
            {"type": "input", "block_id": "said", "label": plain(label), "element": element},
        ],
    }  # fmt: skip
