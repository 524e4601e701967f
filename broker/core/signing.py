"""Texts that only a namespace's own gateways can have made: JSON Web Tokens (HS256) under keys that it keeps.

One namespace and one purpose each: a text made for another one counts as nothing, whoever signed it.
"""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from importlib.util import find_spec
from typing import Any, ClassVar, Final

from pydantic import StrictBytes, StrictInt

from ..errors import InvalidInput, MissingExtra, Untrusted
from .fields import Instant, from_ms, to_ms
from .limits import JSON
from .shape import Model

ALGORITHM: Final = "HS256"
SECRET_BYTES: Final = 32
MOST_CHARACTERS: Final = 8192
_OURS: Final = frozenset({"aud", "exp", "iat"})


class SigningKey(Model):
    """One key: the newest signs, the others only verify. Numbers count up and none is used again."""

    SHOWN: ClassVar[tuple[str, ...]] = ("number", "created_at")

    number: StrictInt
    secret: StrictBytes
    created_at: Instant

    @classmethod
    def new(cls, number: int, now: datetime) -> "SigningKey":
        """A key that nobody has had."""
        return cls(number=number, secret=secrets.token_bytes(SECRET_BYTES), created_at=now)


@dataclass(frozen=True, slots=True)
class Signed:
    """What a text says, now that it is known to be ours."""

    claims: Mapping[str, JSON] = field(repr=False)
    issued_at: datetime
    expires_at: datetime
    key: int
    """The number of the key that it was signed with."""


def sign(
    key: SigningKey, namespace: str, purpose: str, claims: Mapping[str, JSON], now: datetime, ends: datetime
) -> str:
    """The text of some claims, signed; it counts until `ends`, in whole seconds, rounded down.

    Raises `InvalidInput` for claims whose names are taken, or too many of them, and `MissingExtra`.
    """
    if taken := _OURS & claims.keys():
        raise InvalidInput("claims", f"names {min(taken)!r}, which is set here", "other names")
    whole = {**claims, "aud": _audience(namespace, purpose), "iat": _seconds(now), "exp": _seconds(ends)}
    text: str = _jwt().encode(whole, key.secret, algorithm=ALGORITHM, headers={"kid": str(key.number)})
    if len(text) > MOST_CHARACTERS:
        raise InvalidInput("claims", f"make a text of {len(text)} characters", f"up to {MOST_CHARACTERS}")
    return text


def verify(keys: Sequence[SigningKey], namespace: str, purpose: str, text: str, now: datetime) -> Signed:
    """What a text of that namespace and purpose says. Raises `Untrusted` for any other, and `MissingExtra`."""
    jwt = _jwt()
    if len(text) > MOST_CHARACTERS:
        raise Untrusted(purpose, "it is too long")
    try:
        number = jwt.get_unverified_header(text).get("kid")
        key = next((one for one in keys if str(one.number) == number), None)
        if key is None:
            raise Untrusted(purpose, "its signing key is not known, or was dropped")
        # The time is the server's, so it is looked at below and not by the library.
        claims: dict[str, Any] = jwt.decode(
            text, key.secret, algorithms=[ALGORITHM], audience=_audience(namespace, purpose),
            options={"require": ["exp", "iat", "aud"], "verify_exp": False, "verify_iat": False},
        )  # fmt: skip
        ends, made = int(claims["exp"]), int(claims["iat"])
    except jwt.InvalidAudienceError:
        fault = "it was made for another namespace or purpose"
    except (jwt.PyJWTError, ValueError, TypeError):
        fault = "it is forged or broken"
    else:
        if now >= from_ms(ends * 1000):
            raise Untrusted(purpose, "it has expired")
        told = {name: value for name, value in claims.items() if name not in _OURS}
        return Signed(told, from_ms(made * 1000), from_ms(ends * 1000), key.number)
    raise Untrusted(purpose, fault)


def _audience(namespace: str, purpose: str) -> str:
    return f"{namespace}/{purpose}"


def _seconds(at: datetime) -> int:
    return to_ms(at) // 1000


def _jwt() -> Any:
    if find_spec("jwt") is None:
        raise MissingExtra("gateway", "A signed token")
    import jwt  # noqa: PLC0415 - optional extra

    return jwt
