"""Values are built by keyword, of the right types, and words are members of enums."""

from datetime import timedelta

from broker import Action, AnswerKind, Approve, Interrupt, InterruptState, PendingToolCall, Principal, Reject

Principal(id="ann", groups=("refunds",))
Principal("ann")  # E: arg-type, call-arg
Principal(name="ann")  # E: call-arg
Reject()  # E: call-arg
Reject(reason=3)  # E: arg-type
Approve(note=None)

Action(tool="refund", arguments={"amount": 3})
Action(tool="refund")  # E: call-arg
PendingToolCall(tool_call_id="c1", tool_name="refund", arguments=None)
PendingToolCall(tool_call_id="c1", tool_name="refund")  # E: call-arg
InterruptState(pending_tool_calls=(PendingToolCall(tool_call_id="c1", tool_name="refund", arguments={}),))
InterruptState(opaque="text")  # E: arg-type

Interrupt(payload={"question": "which one?"}, expires_in=timedelta(minutes=15))
Interrupt(payload=None, expires_in=900)  # E: arg-type
Interrupt(offers=(AnswerKind.APPROVE, AnswerKind.REJECT))
Interrupt(offers=("approve",))  # E: arg-type
Interrupt(kind="custom")  # E: arg-type
