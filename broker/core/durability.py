"""How safe an acknowledged write is: the classes, and their form on the wire."""

import re
from enum import StrEnum
from typing import ClassVar, Self

from pydantic import StrictInt

from ..errors import InvalidInput
from .fields import Trust
from .limits import JSON
from .shape import Model

_FORM = re.compile(r"memory|fsynced|replicated\(([1-9][0-9]?)\)")
_ALLOWED = "memory, replicated(n) with n from 1 to 99, or fsynced"


class DurabilityLevel(StrEnum):
    """What a write has reached when it is acknowledged."""

    MEMORY = "memory"
    REPLICATED = "replicated"
    FSYNCED = "fsynced"


class Durability(Model):
    """A durability class, text on the wire: `memory`, `replicated(n)` or `fsynced`."""

    SHOWN: ClassVar[tuple[str, ...]] = ("level", "replicas")

    level: DurabilityLevel = DurabilityLevel.MEMORY
    replicas: StrictInt = 0

    @classmethod
    def memory(cls) -> Self:
        """In the memory of the server that replied, and on its disk as its own settings say."""
        return cls()

    @classmethod
    def replicated(cls, replicas: int) -> Self:
        """In the memory of that many replicas too."""
        return cls.parse(f"replicated({replicas})")

    @classmethod
    def fsynced(cls) -> Self:
        """On the disk of the server that replied."""
        return cls(level=DurabilityLevel.FSYNCED)

    @classmethod
    def parse(cls, text: str) -> Self:
        """The class behind its text form."""
        match = _FORM.fullmatch(text)
        if match is None:
            raise InvalidInput("durability", "is no durability class", _ALLOWED)
        return cls(level=DurabilityLevel(text.partition("(")[0]), replicas=int(match[1] or 0))

    def __str__(self) -> str:
        return f"replicated({self.replicas})" if self.replicas else self.level.value

    def to_wire(self) -> JSON:
        """The text form."""
        return str(self)

    @classmethod
    def _read(cls, data: JSON, trust: Trust) -> Self:  # noqa: ARG003 - the same for both
        if not isinstance(data, str):
            raise InvalidInput("durability", "is no text", _ALLOWED)
        return cls.parse(data)
