"""What happens to a question that nobody answers in time: wait, deny, abandon, or ask somebody else.

Nothing here approves unless `approve` is written out. An escalation is a pause of its own: the first question expires,
its run goes on at a worker, and that asks again; each step is stored, and survives whatever restarts meanwhile.
"""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Final

from ...core.answers import Approve
from ...core.limits import JSON
from ...core.models import Interrupt, OnExpiry
from ...core.records import InterruptRecord
from ...core.states import Settlement
from ...errors import InvalidInput

_KEY: Final = "timeout"
"""Where a question's metadata keeps the policy it was asked under."""
_EXPIRY: Final = {
    "wait": OnExpiry.WAIT,
    "deny": OnExpiry.DENY,
    "abandon": OnExpiry.CANCEL,
    "escalate": OnExpiry.CANCEL,
    "approve": OnExpiry.DEFAULT,
}


def with_timeout(interrupt: Interrupt, policy: JSON) -> Interrupt:
    """The question under a policy such as `{"on_timeout": "escalate", "to": "lead", "after": 900}`.

    `after` is in seconds. `to`, for an escalation alone, is the next reviewer; `then` the policy of the question that
    is asked then (else it is denied after as long again). Raises `InvalidInput` for a policy that is not understood,
    since a guess could approve.
    """
    word, after = _checked(_KEY, policy)
    return interrupt.model_copy(
        update={
            "expires_in": after,
            "expires_at": None,
            "on_expiry": _EXPIRY[word],
            "default_answer": Approve() if word == "approve" else None,
            "metadata": interrupt.metadata | {_KEY: policy},
        }
    )


def escalated(records: Iterable[InterruptRecord]) -> list[Interrupt]:
    """The questions to ask again, of those a run goes on from: each that expired under an escalation, to its next.

    Empty where nothing is to be escalated: then the run goes on with what it has.
    """
    return [_next(one.interrupt) for one in records if _is_due(one)]


def _is_due(record: InterruptRecord) -> bool:
    policy = record.interrupt.metadata.get(_KEY)
    asked = isinstance(policy, dict) and policy.get("on_timeout") == "escalate"
    return asked and record.state is Settlement.EXPIRED


def _next(asked: Interrupt) -> Interrupt:
    policy: dict[str, Any] = asked.metadata[_KEY]
    then = policy.get("then", {"on_timeout": "deny", "after": policy["after"]})
    return with_timeout(asked.model_copy(update={"reviewers": (policy["to"],)}), then)


def _checked(field: str, policy: JSON) -> tuple[str, timedelta]:
    said: dict[str, Any] = policy if isinstance(policy, dict) else {}
    word, after = said.get("on_timeout"), said.get("after")
    if not isinstance(word, str) or word not in _EXPIRY:
        raise InvalidInput(f"{field}.on_timeout", "is none that is known", ", ".join(_EXPIRY))
    if (
        isinstance(after, bool)
        or not isinstance(after, int | float)
        or not 0 < after < timedelta.max.total_seconds()
    ):
        raise InvalidInput(f"{field}.after", "is no span", "seconds, more than none")
    if (word == "escalate") != isinstance(said.get("to"), str):
        raise InvalidInput(f"{field}.to", "and escalate need one another", "the next reviewer, or none")
    if "then" in said:
        if word != "escalate":
            raise InvalidInput(f"{field}.then", "is given without an escalation", "on_timeout: escalate")
        _checked(f"{field}.then", said["then"])
    return word, timedelta(seconds=after)
