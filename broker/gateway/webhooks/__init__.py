"""Webhooks out: a sender that follows what happens and tells it to the addresses that a namespace has registered.

sender = WebhookSender(broker)
await sender.run()                    # until it is cancelled; `broker serve --webhooks` does the same
"""

from .sender import WebhookSender, WebhookSettings
from .target import NotAllowed

__all__ = ["NotAllowed", "WebhookSender", "WebhookSettings"]
