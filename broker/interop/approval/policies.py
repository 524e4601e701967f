"""Which calls are asked about, by the policies of all systems together: whoever asks wins, and what is unknown asks.

Each system's policy is read in its own form:

    entelix     {"gate": "always" | "mutating_and_above" | "destructive_only"}, over what effect a tool has
    swink       {"mode": "enabled" | "smart" | "bypassed"}, over what a tool declares and a session trusts
    ADK-Rust    "never" | "always" | {"per_tool": ["delete_record", ...]}

AG-UI has none: there an agent interrupts when it sees fit.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ...core.limits import JSON
from ...core.tools import Tool, registry
from ..swink import ApprovalMode

_EFFECTS: Final = ("read_only", "mutating", "destructive")
_GATES: Final = {"always": 0, "mutating_and_above": 1, "destructive_only": 2}
"""The least effect that a gate asks about, as a place in `_EFFECTS`."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What policies look at: the tool, whether it declares that it wants approval, what it does, and its trust.

    `effect` is read_only, mutating or destructive; None, or another word, is taken for the worst.
    """

    tool: str
    declared: bool = False
    effect: str | None = None
    trusted: bool = False


def asks(policy: JSON, facts: Facts) -> bool:
    """Whether one policy wants a call to be asked about; one that is not understood does."""
    match policy:
        case "never":
            return False
        case {"per_tool": [*names]} if len(policy) == 1:
            # A list that holds something else than names says more than is understood here.
            return facts.tool in names or not all(isinstance(name, str) for name in names)
        case {"mode": str(mode)} if len(policy) == 1 and mode in list(ApprovalMode):
            return ApprovalMode(mode).asks(requires_approval=facts.declared, trusted=facts.trusted)
        case {"gate": str(gate)} if len(policy) == 1 and gate in _GATES:
            return facts.effect not in _EFFECTS or _EFFECTS.index(facts.effect) >= _GATES[gate]
        case _:
            return True


def asks_any(policies: Sequence[JSON], facts: Facts) -> bool:
    """Whether any of several policies wants a call to be asked about; without any, what the tool declares counts."""
    return any(asks(policy, facts) for policy in policies) if policies else facts.declared


def gate(
    tools: Mapping[str, Any] | Sequence[Any],
    *policies: JSON,
    effects: Mapping[str, str] | None = None,
    trusted: Collection[str] = (),
) -> dict[str, Tool]:
    """The tools for `run.calls`, gated as the policies say together.

    `effects` says what tools do, `trusted` which ones the session trusts. A call that was asked about stays gated,
    whatever the policies say when its run is entered again: a recorded question beats a policy narrowed later.
    """
    known = registry(tools)
    return {
        name: replace(
            tool,
            gated=asks_any(policies, Facts(name, tool.gated, (effects or {}).get(name), name in trusted)),
        )
        for name, tool in known.items()
    }
