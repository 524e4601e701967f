"""Approvals in Slack: a card for each, decided by people whom the namespace knows, and kept up to date for everyone.

    slack = Slack(broker, SlackSettings(token=..., signing_secret=..., channel="C0123", users={"U0123": ada}))
    slack.install(app)                    # POST /v1/slack/interactive
    await slack.run()                     # posts and updates cards until it is cancelled

Needs the extra `slack`.
"""

from importlib.util import find_spec

from ...errors import MissingExtra

if any(find_spec(name) is None for name in ("slack_sdk", "aiohttp")):
    raise MissingExtra("slack", "Slack")

from .bot import Slack
from .settings import SlackSettings

__all__ = ["Slack", "SlackSettings"]
