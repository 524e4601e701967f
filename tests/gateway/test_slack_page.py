"""What docs/howto/slack.md shows, as a process of its own, against a stand-in of Slack."""

import asyncio
import os
import re
import socket
import sys
from pathlib import Path

from broker import Action, AsyncBroker, Interrupt, Settlement
from broker.testing import RunningServer, await_until

from .slack_site import SECRET, TOKEN, workspace

PAGE = Path(__file__).resolve().parents[2] / "docs/howto/slack.md"
SITE = re.compile(r"<!-- file: site\.py -->\n```python\n(.*?)```", re.DOTALL)


async def test_F45_the_bot_of_the_page_decides(
    server: RunningServer, used_namespaces: list[str], tmp_path: Path
) -> None:
    used_namespaces.append("airline")
    found = SITE.search(PAGE.read_text())
    assert found is not None
    (tmp_path / "site_of_page.py").write_text(found[1])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    async with workspace() as slack, AsyncBroker(server.url, namespace="airline") as broker:
        env = {
            **os.environ, "BROKER_URL": server.url, "SLACK_TOKEN": TOKEN, "SLACK_SIGNING_SECRET": SECRET,
            "SLACK_CHANNEL": "C1", "SLACK_API": slack.url,
        }  # fmt: skip
        command = ("-m", "uvicorn", "site_of_page:app", "--port", str(port), "--log-level", "warning")
        process = await asyncio.create_subprocess_exec(sys.executable, *command, cwd=tmp_path, env=env)
        try:
            asked = Interrupt.approval(Action(tool="refund", arguments={"amount": 12}), "call-1")
            one = (await broker.suspend("airline", asked, session="s")).interrupt_ids[0]
            await await_until(lambda: slack.messages, timeout=30)
            response = await slack.press(f"http://127.0.0.1:{port}", "U1", slack.button("approve"))
            assert response.status_code == 200
            await await_until(lambda: "Approved by kim." in slack.shown())
            record = await broker.inbox.get(one)
            assert record.state is Settlement.RESOLVED
        finally:
            process.terminate()
            await asyncio.wait_for(process.wait(), 20)
