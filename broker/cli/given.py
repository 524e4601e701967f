"""What people type for values: JSON (also from a file or standard input), and spans of time."""

import json
import re
import sys
from datetime import timedelta
from pathlib import Path

from ..core.limits import JSON, LIMITS
from ..errors import InvalidInput

LONGEST_SPAN = 24
"""More digits than time has."""
_ALLOWED = "JSON (text stands in double quotes), @FILE, or - for standard input"
_SPAN = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s?)?")


def read_json(field: str, given: str) -> JSON:
    """The JSON behind an argument: itself, `@FILE`, or `-` for standard input. Raises `InvalidInput`."""
    source = _source(field, given)
    try:
        return json.loads(source)
    except json.JSONDecodeError as error:
        problem = f"is not JSON (line {error.lineno}, column {error.colno})"
    except RecursionError:
        problem = "is nested too deep"
    except ValueError:
        problem = "holds a number that is too long"
    raise InvalidInput(field, problem, _ALLOWED)


def _source(field: str, given: str) -> str | bytes:
    most = LIMITS.record_bytes * 8  # as text; what is stored is checked by the library
    if given == "-":
        found: str | bytes = sys.stdin.read(most + 1)
    elif given.startswith("@"):
        try:
            with Path(given[1:]).open("rb") as file:
                found = file.read(most + 1)
        except (OSError, ValueError) as error:
            reason = (error.strerror if isinstance(error, OSError) else None) or "not a name of a file"
            raise InvalidInput(field, f"is a file that cannot be read ({reason})", _ALLOWED) from None
    else:
        return given
    if len(found) > most:
        raise InvalidInput(field, "is too long", f"at most {LIMITS.record_bytes} bytes when stored")
    return found


def read_span(field: str, given: str | None) -> timedelta | None:
    """The span of time behind `90s`, `5m`, `2h`, `1d12h`; a bare number is in seconds. Raises `InvalidInput`."""
    if given is None:
        return None
    found = _SPAN.fullmatch(given.strip())
    if found and any(found.groups()) and len(given) <= LONGEST_SPAN:
        days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
        try:
            return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
        except OverflowError:
            pass
    raise InvalidInput(field, "is no span of time", "numbers with d, h, m and s, such as 90s, 2h or 1d12h")
