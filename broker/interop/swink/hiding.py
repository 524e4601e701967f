"""What a log may show of JSON that somebody else made."""

import re
from typing import Final

from ...core.limits import JSON

HIDDEN: Final = "[hidden]"
"""Stands where a value was."""

_SECRET: Final = re.compile(
    r"pass(?:word|phrase|wd|code)|^pw$|^pin$|secret|token|api.?key|access.?key|private.?key|auth(?!or(?!i[sz]))|credential"
    r"|cookie|bearer|signature",
    re.IGNORECASE,
)


def hidden(value: JSON) -> JSON:
    """The same shape without what may be private: numbers, truth values and null stay, text goes.

    Whatever stands under a key that looks like a secret goes whole.
    """
    if isinstance(value, dict):
        return {key: HIDDEN if _SECRET.search(key) else hidden(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [hidden(item) for item in value]
    return HIDDEN if isinstance(value, str) else value
