"""The description of the API is complete and true: programs are made from it, and one tries to break the gateway."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from broker import Action, AsyncBroker, Interrupt, Principal, PrincipalKind
from broker.core.access import ApiRole, Scope
from broker.gateway.identity import PUBLIC
from broker.testing import RunningServer

from .processes import gateway_process
from .site import Site
from .test_identity import routes

KINDS = {ApiRole.AGENT: PrincipalKind.AGENT, ApiRole.SERVICE: PrincipalKind.SERVICE}
APART = ("/v1/events", "/v1/intake/{name}")
"""A stream without an end, and what is let in by its signature: each has tests of its own."""
PHASES = {ApiRole.OPERATOR: "examples,coverage"}


async def known(broker: AsyncBroker) -> dict[str, str]:
    """One of each: ids that a fuzzer would not guess."""
    question = Interrupt.approval(Action(tool="refund", arguments={"cents": 5}), "call-1")
    asked = await broker.suspend("shop", question, session="s_1")
    return {"interrupt_id": asked.interrupt_ids[0], "run_id": asked.run_id, "session_id": "s_1"}


@pytest.mark.parametrize("role", list(ApiRole))
async def test_a_fuzzer_finds_no_fault_with_a_key_of_any_role(
    role: ApiRole, server: RunningServer, namespace: str, tmp_path: Path
) -> None:
    """No server error, and no response that the description does not tell of. Off: the handler of `InvalidInput`.

    Not held against the gateway: that it refuses what the description allows. A question's own schema, and limits that
    are no part of JSON Schema (the depth, the bytes), are checked beyond it.
    """
    async with AsyncBroker(server.url, namespace=namespace) as broker:
        who = Principal(id="fuzzer", kind=KINDS.get(role, PrincipalKind.PERSON))
        key = (await broker.keys.create(who, role)).text
        given = "".join(f'"path.{name}" = "{one}"\n' for name, one in (await known(broker)).items())
    (tmp_path / "schemathesis.toml").write_text(f"[parameters]\n{given}")
    fuzzer = Path(sys.executable).with_name("schemathesis")
    with gateway_process(server.url, namespace, "--requests-per-minute", "0") as gateway:
        command = [
            str(fuzzer), "run", f"{gateway.url}/openapi.json", "--header", f"Authorization: Bearer {key}",
            "--phases", PHASES.get(role, "fuzzing"), "--max-examples", "1", "--seed", "1", "--no-color",
            "--continue-on-failure", "--checks", "all", "--exclude-checks", "positive_data_acceptance",
            *(word for path in APART for word in ("--exclude-path", path)),
        ]  # fmt: skip
        done = await asyncio.to_thread(_run, command, tmp_path)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "passed" in done.stdout


def _run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=110, check=False)


def test_every_route_under_v1_is_described_with_its_scope(broker: AsyncBroker) -> None:
    from broker.gateway import create_app  # noqa: PLC0415 - beside what it is compared with

    app = create_app(broker)
    told = app.openapi()
    for found in routes(app):
        if not found.path.startswith("/v1/") or found.need == PUBLIC:
            continue
        shown = found.path.replace(":path}", "}")
        for method in found.route.methods:
            one = told["paths"][shown][method.lower()]
            assert one["security"] == [{"bearer": [str(found.need)]}], found.path
            assert found.need in list(Scope)
            assert one["operationId"]
            assert one["description"]
            assert {"400", "401", "403", "422", "429", "504"} <= one["responses"].keys()
            if method == "POST":
                (body,) = one["requestBody"]["content"].values()
                assert {"schema", "example"} <= body.keys()
    for path in ("/livez", "/readyz"):
        assert "security" not in told["paths"][path]["get"]
    assert PUBLIC not in json.dumps(told)


def validator(told: dict[str, Any], pointer: str) -> Draft202012Validator:
    resource = Resource.from_contents(told | {"$schema": "https://json-schema.org/draft/2020-12/schema"})
    registry: Any = Registry().with_resource("urn:api", resource)
    return Draft202012Validator({"$ref": f"urn:api#{pointer}"}, registry=registry)


async def test_what_the_examples_come_to_is_as_described(site: Site) -> None:
    """Each request's own example, sent as it stands; what comes back is held against the response's schema."""
    ids = await known(site.broker)
    job = Interrupt.completion(Action(tool="render", arguments={}), "job-1")
    ids["job"] = (await site.broker.suspend("studio", job, session="s_2")).interrupt_ids[0]
    codes = []
    async with site.client(await site.key("boss", ApiRole.OPERATOR)) as boss:
        told = (await boss.get("/openapi.json")).json()
        for path, methods in told["paths"].items():
            for method, one in methods.items() if path not in APART else ():
                sent = (
                    one.get("requestBody", {}).get("content", {}).get("application/json", {}).get("example")
                )
                if isinstance(sent, dict) and sent.get("to"):
                    sent = sent | {"to": ids["job"]}
                at = path.format(**ids, key_id="k")
                came = (
                    await boss.request(method, at, json=sent)
                    if sent is not None
                    else await boss.request(method, at)
                )
                codes.append(came.status_code)
                kind = came.headers["content-type"].partition(";")[0].replace("/", "~1")
                part = f"/paths/{path.replace('/', '~1')}/{method}/responses/{came.status_code}/content/{kind}/schema"
                faults = [fault.message for fault in validator(told, part).iter_errors(came.json())]
                assert faults == [], (method, at, came.text)
    assert codes.count(200) >= 12
    assert codes.count(201) == 2


async def test_another_method_is_a_problem_that_names_those_there_are(site: Site) -> None:
    """OPTIONS too: another site's page gets no permission from it."""
    async with site.client(await site.key("boss", ApiRole.OPERATOR)) as boss:
        for method in ("PUT", "DELETE", "OPTIONS"):
            came = await boss.request(method, "/v1/keys")
            assert (came.status_code, came.json()["code"]) == (405, "wrong_method")
            assert came.headers["Allow"] == "GET, HEAD, POST"
        assert (await boss.get("/v1/nothing")).json()["code"] == "not_found"


async def test_HEAD_tells_what_GET_does_without_the_body(site: Site) -> None:
    async with site.client(await site.key()) as ada, site.client() as nobody:
        shown: httpx.Response = await ada.get("/v1/fleet")
        head = await ada.head("/v1/fleet")
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-type"] == shown.headers["content-type"]
        assert (await nobody.head("/v1/fleet")).status_code == 401
        assert (await ada.get("/v1/fleet")).json() == shown.json()
