"""Write the golden vectors that do not exist yet: `python -m tests.golden.make [NAME ...]`.

A vector that exists is never written again: what it holds is a promise to every record in somebody's Redis.
"""

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from broker.core import answers, dispositions, kinds, models, records
from broker.core.digest import action_digest, canonical_json
from broker.core.ids import interrupt_id, new_run_id, session_hash
from broker.core.limits import INT_MAX, INT_MIN, JSON
from broker.core.shape import Model
from broker.core.states import Mode, RunState, Settlement

FOLDER: Final = Path(__file__).parent / "v1"
NOON: Final = datetime(2026, 1, 1, 12, 0, 0, 123000, tzinfo=UTC)
KIM: Final = answers.Principal(id="kim", groups=("ops",), claims={"iss": "sso", "level": 2}, verified=True)
PAY: Final = models.Action(tool="wire_transfer", arguments={"to": "acct_2", "amount": 40.5, "memo": None})
EVERY_JSON: Final[JSON] = [
    None,
    True,
    False,
    0,
    INT_MIN,
    INT_MAX,
    1.5,
    "",
    "\u00fc\U0001f600\x00",
    [],
    {},
    {"a": [{}]},
]


def _verdict(answer: answers.Answer) -> Model:
    return answers.Verdict(
        interrupt_id="int_4", answer=answer, by=KIM, op="op_1", seen="1:ab", action_digest="1:cd"
    )


def _call(disposition: dispositions.Disposition) -> Model:
    return dispositions.CallRecord(call_id="7", tool="pay", digest="1:ab", disposition=disposition, attempt=2)


def _full_interrupt() -> models.Interrupt:
    return models.Interrupt(
        kind=kinds.Custom(),
        payload=EVERY_JSON,
        reason="acme:budget_hold",
        message="Pay 40.50?",
        action=PAY,
        call_id="call_9",
        response_schema={"type": "object", "required": ["approved"]},
        expires_in=timedelta(minutes=15),
        offers=(answers.AnswerKind.APPROVE, answers.AnswerKind.EDIT, answers.AnswerKind.REJECT),
        on_expiry=models.OnExpiry.DEFAULT,
        default_answer=answers.Reject(reason="nobody was there"),
        audience=models.Audience.APPROVALS,
        labels=("money",),
        reviewers=("ops",),
        metadata={"team": None},
        subagent_run_id="sub_2",
        agent_path=("planner", "payer"),
        pending_handle={"job": "j-9"},
        requested_by=KIM,
        policy="payments",
        policy_version="3",
        traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        key_id="k1",
        agent="airline",
        build="abc123",
        priority=5,
        epoch=1,
        protocol_ids=("run_5", "run_6"),
    )


def _records() -> dict[str, Model]:
    raised = dispositions.Raise(error="no such table")
    return {
        "principal": KIM,
        "action": PAY,
        "pending-tool-call": models.PendingToolCall(tool_call_id="tc_8", tool_name="now", arguments=None),
        "interrupt-state": models.InterruptState(
            interrupted_at=1767225600,
            pending_tool_calls=(
                models.PendingToolCall(tool_call_id="tc_7", tool_name="sh", arguments={"c": 1}),
            ),
            context_snapshot=[{"role": "user", "content": [{"type": "text", "text": "ship it"}]}],
            system_prompt="Be careful.",
            model={"provider": "acme", "model_id": "m-2", "thinking_budgets": None},
            framework="langgraph",
            opaque=bytes(range(256)),
        ),
        "interrupt-state-empty": models.InterruptState(),
        "interrupt-full": _full_interrupt(),
        "interrupt-bare": models.Interrupt(),
        "interrupt-approval": models.Interrupt.approval(PAY, "tu_81"),
        "interrupt-completion": models.Interrupt.completion(PAY, "12", {"job": "j-9"}),
        "interrupt-question": models.Interrupt.question(
            {"text": "Which?"}, {"type": "string"}, expires_in=None
        ),
        "interrupt-scheduled": models.Interrupt(
            kind=kinds.ScheduledPause(phase=kinds.Phase.AFTER, node="quote"), expires_at=NOON
        ),
        "input": models.InputRecord(input={"text": "hi"}, metadata={"a": 1}, protocol_ids=("run_5",)),
        "result": models.ResultRecord(result=None),
        "verdict-approve": _verdict(answers.Approve(note="fine")),
        "verdict-carried": _verdict(
            answers.Approve(metadata={"agui": {"metadata": {"signature": "ab12"}}}, protocol_id="run_6")
        ),
        "verdict-edit": _verdict(answers.Edit(arguments={"amount": 4})),
        "verdict-reject": _verdict(answers.Reject(reason="over budget")),
        "verdict-respond": _verdict(answers.Respond(payload=False)),
        "verdict-complete": _verdict(answers.Complete(value=None)),
        "verdict-fail": _verdict(answers.Fail(error="quota")),
        "verdict-cancel": _verdict(answers.Cancel(reason="left", payload={"toolCall": "call_9"})),
        "call-pending-result": _call(dispositions.PendingResult()),
        "call-resolved-value": _call(dispositions.Resolved(record=dispositions.Value(value=EVERY_JSON))),
        "call-resolved-raise": _call(dispositions.Resolved(record=raised)),
        "call-awaiting-confirmation": _call(dispositions.AwaitingConfirmation()),
        "call-awaiting-completion": _call(dispositions.AwaitingCompletion()),
        "call-awaiting-completion-handle": _call(dispositions.AwaitingCompletion(pending_handle="j-9")),
        "subagent-success": dispositions.SubagentOutcome.success(),
        "subagent-suspended": dispositions.SubagentOutcome.suspended(["int_4"]),
        "subagent-suspended-bare": dispositions.SubagentOutcome.suspended(),
        **_read_records(),
    }


def _read_records() -> dict[str, Model]:
    resolution = records.Resolution(
        interrupt_id="int_4",
        state=Settlement.RESOLVED,
        answer=answers.Approve(),
        by=KIM,
        at=NOON,
        op="op_1",
        reason="in time",
    )
    return {
        "resolution": resolution,
        "interrupt-record": records.InterruptRecord(
            id="int_4",
            run_id="run_5",
            session_id="th_2",
            seq=1,
            queue="agents",
            agent="airline",
            state=Settlement.RESOLVED,
            opened_at=NOON,
            deadline=NOON,
            interrupt=models.Interrupt.approval(PAY, "tu_81"),
            digest="1:ab",
            resolution=resolution,
        ),
        "run-record": records.RunRecord(
            id="run_5",
            session_id="th_2",
            agent="airline",
            build="abc123",
            queue="agents",
            priority=-1,
            state=RunState.LEASED,
            seq=1,
            fence=3,
            tries=1,
            holder="worker-1",
            lease_until=NOON,
            mode=Mode.EACH,
            interrupt_ids=("int_4",),
            created_at=NOON,
            updated_at=NOON,
            errors=("boot failed",),
            metadata={"a": 1},
            input={"text": "hi"},
            protocol_ids=("run_5",),
        ),
        "history-entry": records.HistoryEntry(
            at=NOON,
            event="answer",
            run_id="run_5",
            seq=1,
            interrupt_id="int_4",
            state="resolved",
            by=KIM,
            op="op_1",
        ),
    }


def _newer() -> dict[str, tuple[type[Model], dict[str, JSON]]]:
    """Records as a later release may write them: what this one does not know must come through."""
    return {
        "newer-interrupt": (
            models.Interrupt,
            {
                "kind": {"type": "quota_wait", "bucket": "eu"},
                "payload": None,
                "reason": "acme:quota",
                "offers": ["approve", "delegate"],
                "on_expiry": "escalate",
                "audience": "board",
                "ladder": [{"after_ms": 900000}],
            },
        ),
        "newer-verdict": (
            answers.Verdict,
            {
                "interrupt_id": "int_4",
                "answer": {"kind": "delegate", "to": "lead"},
                "by": {"id": "kim", "kind": "robot"},
                "op": "op_1",
                "signature": b"\x00\xff",
            },
        ),
        "newer-call": (
            dispositions.CallRecord,
            {"call_id": "7", "tool": "t", "digest": "1:ab", "disposition": {"kind": "awaiting_review"}},
        ),
    }


def _pure() -> dict[str, JSON]:
    """Digests and ids: the same inputs give the same text for ever."""
    arguments: list[JSON] = [
        {"to": "a", "amount": 40},
        {"amount": 40.0, "to": "a"},
        None,
        EVERY_JSON,
        [1e21, 1e-7, -0.0],
    ]
    point: JSON = {
        "namespace": "airline",
        "session": "s_1",
        "run_id": "run_5",
        "seq": 1,
        "agent_path": ["planner"],
        "call_key": "tu_81",
        "kind_type": "approval_pending",
        "content_digest": "1:ab",
    }
    return {
        "action-digest": [
            {
                "tool": "wire_transfer",
                "arguments": value,
                "canonical": canonical_json(value).decode(),
                "digest": action_digest("wire_transfer", value),
            }
            for value in arguments
        ],
        "content-digest": [
            {"interrupt": one.to_json(), "digest": one.content_digest}
            for one in (models.Interrupt(), _full_interrupt())
        ],
        "ids": {
            "session_hash": {name: session_hash(name) for name in ("s_1", "th/2:x", "\u00fc")},
            "run_id": {
                "session": "s_1",
                "namespace": "airline",
                "key": "k",
                "id": new_run_id("s_1", namespace="airline", key="k"),
            },
            "interrupt_id": {"point": point, "id": interrupt_id(**point)},
        },
    }


def vectors() -> dict[str, JSON]:
    """Everything a file is made of, by its name."""
    found: dict[str, JSON] = {}
    for name, value in _records().items():
        found[name] = {
            "type": type(value).__name__,
            "json": value.to_json(),
            "hex": value.to_bytes(compress_over=2**30).hex(),
        }
    for name, (model, wire_map) in _newer().items():
        value = model.from_wire(wire_map)
        found[name] = {"type": model.__name__, "json": value.to_json(), "hex": value.to_bytes().hex()}
    large = models.InputRecord(input={"text": "ship it " * 300})
    found["compressed"] = {
        "type": "InputRecord",
        "json": large.to_json(),
        "hex": large.to_bytes().hex(),
        "note": "read only: another zlib may compress to other bytes",
    }
    return found | _pure()


def main(names: list[str]) -> None:
    """Write the named vectors, or all, where there is none yet."""
    for name, body in vectors().items():
        path = FOLDER / f"{name}.json"
        if (not names or name in names) and not path.exists():
            path.write_text(json.dumps(body, indent=1, ensure_ascii=True) + "\n")
            sys.stdout.write(f"wrote {path.name}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
