"""Text from anybody, made fit for a terminal: what could move the cursor, hide or turn text round is shown instead.

Agents, tools and users write ids, messages and payloads. None of it may act on the screen of the person who decides.
"""

import json
import unicodedata
from collections.abc import Callable

from ..core.limits import JSON


def safe(text: str) -> str:
    r"""`text` on one line, with every character that does not print as its escape (`\u001b`)."""
    return text if text.isprintable() else "".join(map(_shown, text))


def safe_lines(text: str) -> str:
    """As `safe`, but lines stay lines."""
    return "\n".join(safe(line.expandtabs(4)) for line in text.splitlines())


def pretty_json(value: JSON) -> str:
    """JSON for a person: indented, letters of every script as they are, everything that does not print escaped."""
    return _on_each_line(json.dumps(value, ensure_ascii=False, indent=2), _escaped)


def brief_json(value: JSON) -> str:
    """JSON for a person, on one line."""
    text = json.dumps(value, ensure_ascii=False)
    return "".join(map(_escaped, text))


def machine_json(value: JSON, *, indent: bool = False) -> str:
    """JSON for a program: ASCII only, so that no reader's encoding and no terminal matters."""
    return json.dumps(value, ensure_ascii=True, indent=2 if indent else None)


def _on_each_line(text: str, change: Callable[[str], str]) -> str:
    return "\n".join("".join(map(change, line)) for line in text.split("\n"))


def _shown(char: str) -> str:
    # A no-break space is a space to whoever reads it.
    return " " if unicodedata.category(char) == "Zs" else _escaped(char)


def _escaped(char: str) -> str:
    if char.isprintable():
        return char
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at] << 8 | units[at + 1]:04x}" for at in range(0, len(units), 2))
