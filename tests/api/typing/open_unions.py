"""Open unions may grow in a minor release: a `match` without `case _` is an error today, not a surprise tomorrow."""

from broker import Answer, ApprovalPending, Approve, Custom, Edit, InterruptionKind, Reject, ScheduledPause
from broker.interop import entelix


def every_kind_known_today(kind: InterruptionKind) -> str:  # E: return
    match kind:  # E: exhaustive-match
        case Custom():
            return "custom"
        case ApprovalPending(tool_use_id=tool_use):
            return tool_use
        case ScheduledPause(node=node):
            return node


def and_the_rest(kind: InterruptionKind) -> str:
    match kind:
        case ApprovalPending(tool_use_id=tool_use):
            return tool_use
        case ScheduledPause(phase=phase, node=node):
            return f"{phase.value} {node}"
        case other:
            return other.type


def some_answers(answer: Answer) -> bool:  # E: return
    match answer:  # E: exhaustive-match
        case Approve() | Edit():
            return True
        case Reject():
            return False


def a_kind_is_not_its_word() -> InterruptionKind:
    return "custom"  # E: return-value


def every_command_known_today(command: entelix.Command) -> str:  # E: return
    match command:  # E: exhaustive-match
        case entelix.Resume() | entelix.ApproveTool() | entelix.Update():
            return "here"
        case entelix.GoTo(node=node):
            return node


async def how_a_question_ended() -> str:
    return entelix.interrupt({"ask": "go on?"}).answer  # E: return-value
