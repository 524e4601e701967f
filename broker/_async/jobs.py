"""Jobs done elsewhere: they tell how they ended, and meanwhile that they still run; by interrupt id or token."""

from ..core.answers import Answer, Complete, Fail, Principal, PrincipalKind
from ..core.entries import TOKEN, read_token
from ..core.limits import JSON
from ..core.outcomes import Accepted, Outcome, Unknown
from ..core.tokens import PREFIX, About, Purpose
from ..store.commands import answers, entries
from ..store.commands.values import Command
from .inbox import Inbox
from .link import Link
from .tokens import Tokens


class Jobs:
    """The part of the front door that jobs use. Never by the job's own handle: anybody may know that."""

    inbox: Inbox
    tokens: Tokens
    _link: Link

    async def complete(
        self, to: str, value: JSON, *, by: Principal | None = None, op: str | None = None
    ) -> Outcome:
        """What became of the result of a job done elsewhere, by interrupt id or token.

        The token that its call was given, and one that `tokens.create` made for the call, work from before the job is
        started: a result that comes before the run has paused is kept. Safe to repeat; see `Inbox.answer`. Raises
        `Untrusted` for a token made here that does not count.
        """
        return await self._said(to, Complete(value=value), by, op)

    async def fail(
        self, to: str, error: str, *, by: Principal | None = None, op: str | None = None
    ) -> Outcome:
        """What became of the failure of a job done elsewhere, by interrupt id or token; as `complete`."""
        return await self._said(to, Fail(error=error), by, op)

    async def heartbeat(self, to: str) -> Outcome:
        """What became of telling that a job still runs, by interrupt id or token: its next span begins now.

        One that comes too late is told how its interrupt ended. Before the run has paused, and where nobody asked for
        heartbeats, it changes nothing. Safe to repeat. Raises `UnknownId`, and `Untrusted` for a token that does not
        count.
        """
        if to.startswith((PREFIX, TOKEN)):
            about = (await self.tokens.verify(to, Purpose.HEARTBEAT)).about
        else:
            about = About(interrupt_id=to)

        async def make() -> Command[Outcome] | Accepted | Unknown:
            p, at = await self.inbox._job(about)  # noqa: SLF001 - the same house
            if at is not None:
                return answers.heartbeat(p, at)
            if about.interrupt_id is not None:
                return Unknown(id=about.interrupt_id)
            return Accepted(run_id=about.run_id or "", session_id=about.session_id or "")

        return await self._link.chase(make)

    async def _said(self, to: str, answer: Answer, by: Principal | None, op: str | None) -> Outcome:
        if to.startswith(PREFIX):
            token = await self.tokens.verify(to, Purpose.COMPLETE)
            about, who = token.about, by or token.principal
            if about.interrupt_id is not None:
                return await self.inbox.answer(about.interrupt_id, answer, by=who, op=op)
            return await self._of_call(
                about.session_id or "", about.run_id or "", about.call_id or "", answer, who, op
            )
        if not to.startswith(TOKEN):
            return await self.inbox.answer(to, answer, by=by, op=op)
        session, run, entry = read_token(to)
        await self._link.open()
        p = self._link.space.of_session(session)
        if await self._link.fetch(entries.read_token(p, run, entry)) != to:
            return Unknown(id=entry)
        who = by or self._link.by or Principal(id=f"token:{entry}"[:256], kind=PrincipalKind.SERVICE)
        return await self._of_call(session, run, entry, answer, who, op)

    async def _of_call(
        self, session: str, run: str, entry: str, answer: Answer, who: Principal, op: str | None
    ) -> Outcome:
        # Whichever pause asks about it: a call has one token, and one end.
        return await self.inbox._answer_call(session, entry, answer, run, None, who, None, op)  # noqa: SLF001
