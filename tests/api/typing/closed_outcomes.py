"""Outcomes are a closed union: whoever handles all of them needs no `case _`, and is told of one left out."""

from broker import (
    Accepted,
    AlreadyDecided,
    Conflict,
    Expired,
    Full,
    Invalid,
    NotAllowed,
    NotDurable,
    Outcome,
    Parked,
    Replayed,
    Superseded,
    Unknown,
    Withdrawn,
)


def every_outcome(outcome: Outcome) -> str:
    match outcome:
        case Accepted() | Replayed() | Parked():
            return "done"
        case AlreadyDecided(winner=won):
            return f"{won.by.id} was first" if won.by else "somebody was first"
        case Expired() | Withdrawn() | Superseded():
            return "too late"
        case NotAllowed() | Invalid() | Unknown() | NotDurable() | Conflict() | Full():
            return f"not counted: {outcome.code}"


def two_outcomes(outcome: Outcome) -> str:  # E: return
    match outcome:  # E: exhaustive-match
        case Accepted() | Replayed():
            return "done"
        case AlreadyDecided():
            return "too late"


def the_rest_in_one(outcome: Outcome) -> str:
    match outcome:
        case Accepted():
            return "done"
        case other:
            return other.code


def nobody_may_have_won(outcome: AlreadyDecided) -> str:
    return outcome.winner.by.id  # E: union-attr
