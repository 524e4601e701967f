"""What is known of a Slack app and its workspace."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from ...core.answers import Principal

Users = Mapping[str, Principal] | Callable[[str], Awaitable[Principal | None]]


@dataclass(frozen=True, slots=True)
class SlackSettings:
    """One app in one workspace."""

    token: str = field(repr=False)
    """The bot's token: `xoxb-...`, with the scope `chat:write`."""
    signing_secret: str = field(repr=False)
    """What Slack signs its requests with."""
    channel: str
    """Where cards are posted, by its id."""
    users: Users
    """Who a Slack user is here. Whoever is nobody here decides nothing."""
    queue: str | None = None
    """Only approvals of this queue."""
    inbox: str | None = None
    """The address of the inbox; a card links to `<inbox>/interrupts/<id>`."""
    team: str | None = None
    """The workspace, by its id; others are refused."""
    api: str = "https://slack.com/api/"
    lease: timedelta = timedelta(seconds=15)
    """After how long another process takes over from one that has died."""

    async def person(self, user: str) -> Principal | None:
        """Who a Slack user is: verified, since Slack has signed what they did."""
        found = self.users.get(user) if isinstance(self.users, Mapping) else await self.users(user)
        return found.model_copy(update={"verified": True}) if found is not None else None
