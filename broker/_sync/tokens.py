# Generated from broker/_async/tokens.py by tests/tools/unasync.py (make sync): do not edit.
"""Tokens for outsiders: who has one may answer one interrupt, or complete one call, and do nothing else."""

import logging
from datetime import timedelta

from ..core import tokens
from ..core.answers import Principal, PrincipalKind
from ..core.entries import TOKEN, read_token
from ..core.fields import MILLISECOND, from_ms, to_ms
from ..core.limits import check_id
from ..core.states import Settlement
from ..core.tokens import About, NewToken, Purpose, Token
from ..errors import InvalidInput, Untrusted
from ..store.commands import credentials, entries, facts
from .inbox import Inbox
from .link import Link
from .signing import Signing

log = logging.getLogger("broker.tokens")


class Tokens:
    """Makes, verifies and takes back tokens. Each refusal is logged, with the token's id and never its text."""

    def __init__(self, link: Link, signing: Signing, inbox: Inbox) -> None:
        self._link = link
        self._signing = signing
        self._inbox = inbox

    def create(
        self,
        to: str,
        purpose: Purpose | str,
        *,
        for_: Principal | None = None,
        expires_in: timedelta | None = None,
        single_use: bool = False,
    ) -> NewToken:
        """A token for one interrupt, or (by the token that its tool was given) for one call; its text is told once.

        It ends with the deadline of the interrupt or sooner; without a deadline after `expires_in`, a day unless said
        otherwise. `for_` is who acts with it, else a service named after the token; an agent never decides. A
        `single_use` one counts while its interrupt is open, so a repeat after a lost reply is refused too. Not safe to
        repeat: each call makes another one. Raises `InvalidInput`, `UnknownId`, `Untrusted`, `MissingExtra`.
        """
        known = Purpose(purpose) if purpose in list(Purpose) else None
        if known is None:
            raise InvalidInput("purpose", "is not known", ", ".join(Purpose))
        now = from_ms(self._link.now() // 1000)
        deadline = None
        if to.startswith(TOKEN):
            if known is Purpose.DECIDE:
                raise InvalidInput("purpose", "decide is for interrupts", "complete, heartbeat")
            about = (self._of_call(to)).about
        else:
            record = self._inbox.get(to)
            tokens.check_purpose(record, known)
            about, deadline = About(interrupt_id=record.id), tokens.ends_at(record)
        token = tokens.new_token(known, about, for_, single_use=single_use)
        span = tokens.span(expires_in, deadline, now)
        text = self._signing.sign(tokens.PURPOSE, token.claims(), span)
        ends = from_ms(to_ms(now + span) // 1000 * 1000)
        return NewToken(token=token.model_copy(update={"expires_at": ends}), text=f"{tokens.PREFIX}{text}")

    def verify(self, text: str, purpose: Purpose | None = None) -> Token:
        """What a token says that counts now, for that purpose where one is given. Nothing is written.

        The token that a long-running call was given counts as one that completes that call. Raises `Untrusted` for one
        that is forged, expired, revoked, used, or made for another purpose or namespace.
        """
        token: Token | None = None
        try:
            token = self._read(text)
            self._check(token, purpose)
        except Untrusted as refused:
            log.warning("token %s refused: %s", token.id if token else "unknown", refused.reason)
            raise
        return token

    def revoke(self, token: str) -> None:
        """Takes a token back, by its text or its id: it counts no more, in every process. Safe to repeat.

        Raises `Untrusted` for a text that no token has.
        """
        if token.startswith(TOKEN):
            raise InvalidInput("token", "is the token that a call was given", "one that was created here")
        now = self._link.now()
        if token.startswith(tokens.PREFIX):
            read = self._read(token)
            name, ends = read.id, read.expires_at
        else:
            name, ends = check_id("token", token), None
        until = to_ms(ends) if ends is not None else now // 1000 + tokens.LONGEST // MILLISECOND
        p = self._link.space.partition(0)
        self._link.fetch(credentials.revoke(p, name, until, now // 1000))

    def _read(self, text: str) -> Token:
        if text.startswith(TOKEN):
            return self._of_call(text)
        if not text.startswith(tokens.PREFIX):
            raise Untrusted(tokens.PURPOSE, "it is none of ours")
        return Token.of(self._signing.verify(tokens.PURPOSE, text.removeprefix(tokens.PREFIX)))

    def _of_call(self, text: str) -> Token:
        """The token that a long-running call was given: it lies in the journal, and ends with it."""
        try:
            session, run, call = read_token(text)
        except InvalidInput:
            raise Untrusted(tokens.PURPOSE, "it is forged or broken") from None
        self._link.open()
        p = self._link.space.of_session(session)
        if self._link.fetch(entries.read_token(p, run, call)) != text:
            raise Untrusted(tokens.PURPOSE, "it is not known, or its run is long over")
        who = Principal(id=f"token:{call}"[:256], kind=PrincipalKind.SERVICE)
        about = About(session_id=session, run_id=run, call_id=call)
        return Token(id=call, purpose=Purpose.COMPLETE, about=about, principal=who)

    def _check(self, token: Token, purpose: Purpose | None) -> None:
        """Raises `Untrusted` for one that is for something else, was taken back or was used."""
        if purpose is not None and not token.allows(purpose):
            raise Untrusted(tokens.PURPOSE, f"it is one to {token.purpose}, not to {purpose}")
        if token.expires_at is None:
            return
        if self._link.fetch(credentials.is_revoked(self._link.space.partition(0), token.id)):
            raise Untrusted(tokens.PURPOSE, "it was revoked")
        one = token.about.interrupt_id
        p = self._link.space.of_id(one) if one else None
        if token.single_use and one and p:
            states = self._link.fetch(facts.read_states(p, [one]))
            if states[one] != Settlement.OPEN:
                raise Untrusted(tokens.PURPOSE, "it was for one use, and its interrupt is settled")


__all__ = ["NewToken", "Purpose", "Token", "Tokens"]
