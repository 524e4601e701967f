"""A stand-in of Slack: a real HTTP server that checks what Slack checks, and people who press buttons in it."""

import asyncio
import json
import socket
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode

import httpx
import uvicorn
from slack_sdk.signature import SignatureVerifier

from broker.testing import await_until

TOKEN = "xoxb-test"
SECRET = "8f742231b10e8888abcd99yyyzzz85a5"
TRIGGER_SECONDS = 3.0
TEXT, SHORT, VALUE, TITLE = 3000, 150, 2000, 24


class Fault(Exception):
    """What Slack answers instead of ok."""


@dataclass
class Workspace:
    """One channel with its messages, and what single people were told."""

    url: str = ""
    messages: dict[str, dict[str, Any]] = field(default_factory=dict)
    whispers: list[tuple[str, str]] = field(default_factory=list)
    views: list[dict[str, Any]] = field(default_factory=list)
    updates: int = 0
    fail_next: list[str] = field(default_factory=list)
    triggers: dict[str, float] = field(default_factory=dict)
    slowest: float = 0.0

    # The API ---------------------------------------------------------------------------------------------------

    def call(self, method: str, given: dict[str, Any], authorization: str) -> dict[str, Any]:
        if authorization != f"Bearer {TOKEN}":
            raise Fault("invalid_auth")
        if self.fail_next:
            raise Fault(self.fail_next.pop())
        return getattr(self, method.replace(".", "_"))(given)  # type: ignore[no-any-return]

    def chat_postMessage(self, given: dict[str, Any]) -> dict[str, Any]:
        if given.get("channel") != "C1":
            raise Fault("channel_not_found")
        check_message(given)
        ts = f"{time.time():.6f}"
        self.messages[ts] = given
        return {"channel": "C1", "ts": ts}

    def chat_update(self, given: dict[str, Any]) -> dict[str, Any]:
        if given.get("ts") not in self.messages:
            raise Fault("message_not_found")
        check_message(given)
        self.messages[given["ts"]].update(given)
        self.updates += 1
        return {"channel": "C1", "ts": given["ts"]}

    def chat_postEphemeral(self, given: dict[str, Any]) -> dict[str, Any]:
        check_message(given)
        self.whispers.append((given["user"], given["blocks"][0]["text"]["text"]))
        return {"message_ts": "1"}

    def views_open(self, given: dict[str, Any]) -> dict[str, Any]:
        if time.monotonic() - self.triggers.pop(given.get("trigger_id", ""), 0.0) > TRIGGER_SECONDS:
            raise Fault("expired_trigger_id")
        view = given["view"]
        for name in ("title", "submit", "close"):
            check_text(view[name], TITLE)
        check_blocks(view["blocks"])
        if len(view["private_metadata"]) > TEXT:
            raise Fault("invalid_arguments")
        self.views.append(view)
        return {"view": view}

    # People ----------------------------------------------------------------------------------------------------

    def shown(self) -> str:
        """Everything in the channel, as JSON."""
        return json.dumps(list(self.messages.values()), ensure_ascii=False)

    def button(self, kind: str) -> dict[str, Any]:
        """A button of the last message."""
        for block in list(self.messages.values())[-1]["blocks"]:
            for element in block.get("elements", ()):
                if element.get("action_id") == f"broker_{kind}":
                    return dict(element)
        raise KeyError(kind)

    async def press(self, site: str, user: str, button: dict[str, Any], **how: Any) -> httpx.Response:
        """Somebody presses a button."""
        trigger = f"t{len(self.triggers)}.{time.monotonic()}"
        self.triggers[trigger] = time.monotonic()
        payload = {
            "type": "block_actions", "team": {"id": "T1"}, "user": {"id": user, "name": "the boss"},
            "channel": {"id": "C1"}, "trigger_id": trigger, "actions": [button],
        }  # fmt: skip
        return await self.send(site, payload, **how)

    async def submit(self, site: str, user: str, said: str) -> httpx.Response:
        """Somebody sends the last form."""
        view = {
            **self.views[-1],
            "state": {"values": {"said": {"said": {"type": "plain_text_input", "value": said}}}},
        }
        return await self.send(
            site, {"type": "view_submission", "team": {"id": "T1"}, "user": {"id": user}, "view": view}
        )

    async def send(
        self, site: str, payload: dict[str, Any], *, secret: str = SECRET, age: int = 0, tamper: bool = False
    ) -> httpx.Response:
        body = urlencode({"payload": json.dumps(payload)})
        stamp = str(int(time.time()) - age)
        signature = SignatureVerifier(secret).generate_signature(timestamp=stamp, body=body)
        headers = {
            "content-type": "application/x-www-form-urlencoded", "x-slack-request-timestamp": stamp,
            "x-slack-signature": signature or "",
        }  # fmt: skip
        began = time.monotonic()
        async with httpx.AsyncClient(timeout=20) as http:
            sent = body.replace("U1", "U9") if tamper else body
            response = await http.post(f"{site}/v1/slack/interactive", content=sent, headers=headers)
        self.slowest = max(self.slowest, time.monotonic() - began)
        return response


def check_text(text: dict[str, Any], most: int) -> None:
    if text["type"] not in ("plain_text", "mrkdwn") or not 1 <= len(text["text"]) <= most:
        raise Fault("invalid_blocks")
    if text["type"] == "mrkdwn":
        raise Fault("agent text must not be markup")


def check_actions(elements: list[dict[str, Any]]) -> None:
    ids = [one["action_id"] for one in elements]
    if len(set(ids)) != len(ids) or not ids or any(len(one.get("value", "")) > VALUE for one in elements):
        raise Fault("invalid_blocks")


def check_blocks(blocks: list[dict[str, Any]]) -> None:
    if not 1 <= len(blocks) <= 50:
        raise Fault("invalid_blocks")
    for block in blocks:
        match block["type"]:
            case "header":
                check_text(block["text"], SHORT)
            case "section":
                check_text(block["text"], TEXT)
            case "context":
                check_text(block["elements"][0], TEXT)
            case "actions":
                check_actions(block["elements"])
            case "input":
                check_text(block["label"], VALUE)
                if len(block["element"].get("initial_value", "")) > block["element"]["max_length"]:
                    raise Fault("invalid_blocks")
            case _:
                raise Fault("invalid_blocks")


def check_message(given: dict[str, Any]) -> None:
    if not given.get("text"):
        raise Fault("no_text")
    check_blocks(given["blocks"])


@asynccontextmanager
async def workspace() -> AsyncGenerator[Workspace]:
    """Slack on a free port of this machine, until the block ends."""
    found = Workspace()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        if "json" in headers.get("content-type", ""):
            given = json.loads(body or b"{}")
        else:
            given = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        try:
            told = {
                "ok": True,
                **found.call(scope["path"].rpartition("/")[2], given, headers.get("authorization", "")),
            }
        except Fault as fault:
            told = {"ok": False, "error": str(fault)}
        rows = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": rows})
        await send({"type": "http.response.body", "body": json.dumps(told).encode()})

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        found.url = f"http://127.0.0.1:{listening.getsockname()[1]}/api/"
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
        task = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            await await_until(lambda: server.started or task.done())
            yield found
        finally:
            server.should_exit = True
            await task
