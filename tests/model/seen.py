"""What can be seen of a namespace from outside, and what the model expects to be seen."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Final

from broker.store.commands.values import Arg, Read, text
from broker.store.keys import Partition, Pool
from tests.records import fields

from .state import CLOSED, Model, ModelInterrupt, ModelRun

AUDIENCES: Final = ("approvals", "completions")
LISTS: Final = ("dead", "lists", "timers", "retention", *(f"unseen {a}" for a in AUDIENCES))
RUN: Final = ("state", "seq", "fence", "tries", "mode", "left", "ids", "nonce", "suspend_op", "requeue_op", "start_op",
              "withdraw_op", "lease_until", "ready_at")  # fmt: skip
INTERRUPT: Final = ("state", "op", "answer", "seq", "verdict", "deadline")
MOMENTS: Final = ("lease_until", "ready_at", "deadline")

Facts = dict[str, Any]
Bell = dict[str, str]


@dataclass(frozen=True)
class View:
    """Every record and index in plain values; what was rung since the last look, by stream and entry id."""

    facts: Facts
    rung: dict[str, dict[str, Bell]] = field(default_factory=dict)
    history: int = 0

    def of(self, kind: str, name: str) -> dict[str, str]:
        """The fields of one record, none where there is no such record."""
        found: dict[str, str] = self.facts.get(f"{kind} {name}", {})
        return found


@dataclass(frozen=True)
class Names:
    """What there may be to see: every id that was ever used."""

    session: str
    pool: Pool
    runs: Collection[str]
    interrupts: Collection[str]
    slots: Collection[str]


LOOK: Final = """
local found = {}
for n, key in ipairs(KEYS) do
  local kind = redis.call('TYPE', key).ok
  if kind == 'string' and string.match(key, '^{[^}]*}:(%a+):') ~= 'verdict' then found[n] = redis.call('GET', key)
  elseif kind == 'hash' then found[n] = redis.call('HGETALL', key)
  elseif kind == 'zset' then found[n] = redis.call('ZRANGE', key, 0, -1)
  elseif kind == 'stream' then found[n] = redis.call('XRANGE', key, ARGV[n], '+')
  elseif kind == 'set' then
    found[n] = {}
    for _, name in ipairs(redis.call('SMEMBERS', key)) do
      local members = redis.call('ZRANGE', string.gsub(key, 'lists$', 'open:') .. name, 0, -1)
      if #members == 0 then found[n][#found[n] + 1] = 'the empty list ' .. name end
      for _, member in ipairs(members) do found[n][#found[n] + 1] = member end
    end
  elseif kind == 'list' then found[n] = redis.call('LLEN', key)
  else found[n] = kind ~= 'none' and 1 or 0 end
end
return found
"""


def look(p: Partition, names: Names, last: dict[str, str]) -> Read[View]:
    """Everything there is, in one call; of each doorbell what came after the entry in `last`."""
    hashes = [*(("run", one) for one in names.runs), *(("interrupt", one) for one in names.interrupts)]
    hashes += [("calls", one) for one in names.runs] + [
        (kind, names.session) for kind in ("active", "early", "aliases")
    ]
    lists = [("ready", str(names.pool)), *((one.partition(" ")[0], one.partition(" ")[2]) for one in LISTS)]
    streams = {one: p.key(one) for one in ("interrupts", "dispositions")}
    keys = [p.key("history", names.session), *(p.key(kind, name) for kind, name in (*hashes, *lists))]
    keys += [p.key("verdict", one) for one in names.slots] + [*streams.values()]
    after = ["-"] * (len(keys) - len(streams)) + [f"({last[name]}" for name in streams]

    def decode(replies: list[Any]) -> View:
        history, *rows = replies[0]
        rest = iter(rows)
        facts: Facts = {}
        for kind, name in hashes:
            facts |= _hash(kind, name, _found(next(rest) or ()))
        for kind, name in lists:
            facts[f"{kind} {name}".strip()] = _members(kind, next(rest) or ())
        facts["verdicts"] = sorted(one for one in names.slots if next(rest))
        rung = {name: {text(at): _pairs(row) for at, row in next(rest) or ()} for name in streams}
        return View(facts, rung, int(history))

    command: tuple[Arg, ...] = ("EVAL", LOOK, len(keys), *keys, *after)
    return Read((command,), decode)


def _found(stored: Any) -> dict[str, str]:
    """The fields of a hash or of a record."""
    if isinstance(stored, bytes):
        return {name: text(value) for name, value in fields(stored).items()}
    return _pairs(stored)


def _pairs(row: Any) -> dict[str, str]:
    return {text(name): text(value) for name, value in zip(row[::2], row[1::2], strict=True)}


def _members(kind: str, found: Any) -> list[str]:
    members = [text(one) for one in found]
    return sorted(one for one in members if kind != "retention" or not one.startswith("h "))


def _hash(kind: str, name: str, found: dict[str, str]) -> Facts:
    if not found:
        return {}
    if kind in ("run", "interrupt"):
        return {
            f"{kind} {name}": {
                one: _plain(one, found.get(one, "")) for one in (RUN if kind == "run" else INTERRUPT)
            }
        }
    if kind == "calls":
        return {f"calls {name}": {call: value.partition(" ")[0] for call, value in found.items()}}
    return {kind: sorted(found) if kind == "early" else found}


def _plain(name: str, value: str) -> str:
    """Moments in whole seconds: a call's own microseconds are nobody's business."""
    return str(int(value) // 1_000_000) if name in MOMENTS and value else value


# What the model expects ------------------------------------------------------------------------------------------


def expected(m: Model, names: Names) -> Facts:
    """The same facts, of the model."""
    r = m.records
    facts: Facts = {}
    for run in r.runs.values():
        facts[f"run {run.id}"] = _run(m, run)
        if run.calls:
            facts[f"calls {run.id}"] = dict(run.calls)
    for i in r.interrupts.values():
        facts[f"interrupt {i.id}"] = _interrupt(i)
    facts |= {f"ready {names.pool}": sorted(run.id for run in r.runs.values() if run.offered)}
    facts["dead"] = sorted(run.id for run in r.runs.values() if run.state == "dead")
    facts["lists"] = sorted(i.id for i in r.interrupts.values() if i.state == "open")
    facts["timers"] = sorted(_timers(m))
    facts["retention"] = sorted(r.retention)
    for audience in AUDIENCES:
        facts[f"unseen {audience}"] = sorted(
            one for one in r.unseen if r.interrupts[one].audience == audience
        )
    facts["verdicts"] = sorted(r.verdicts)
    marks = {run.id: str(run.seq) for run in r.runs.values() if run.seq and run.state not in CLOSED}
    aliases = {f"call:{call}": " ".join(ids) for (_, call), ids in r.aliases.items() if ids}
    early = sorted(name for _, name in r.early)
    return facts | {
        kind: found for kind, found in (("active", marks), ("aliases", aliases), ("early", early)) if found
    }


def _run(m: Model, run: ModelRun) -> dict[str, str]:
    values = (run.state, run.seq, run.fence, run.tries, run.mode, len(m.open_of(run)), " ".join(run.ids), run.nonce,
              run.point, run.requeue_op, run.start_op, run.withdraw_op, run.until // 1_000_000 or "",
              run.ready_at // 1_000_000 or "")  # fmt: skip
    return dict(zip(RUN, map(str, values), strict=True))


def _interrupt(i: ModelInterrupt) -> dict[str, str]:
    deadline = "" if i.deadline is None else i.deadline // 1_000_000
    return dict(zip(INTERRUPT, map(str, (i.state, i.op, i.answer, i.seq, i.slot, deadline)), strict=True))


def _timers(m: Model) -> list[str]:
    found = [f"r {run.id}" for run in m.records.runs.values() if run.until or run.ready_at]
    open_ = (i for i in m.records.interrupts.values() if i.state == "open")
    return found + [f"i {i.id}" for i in open_ if i.deadline is not None and i.policy != "wait"]


def differences(seen: Facts, wanted: Facts) -> list[str]:
    """One line for each fact that is not as expected."""
    found = []
    for name in sorted(seen.keys() | wanted.keys()):
        one, other = seen.get(name), wanted.get(name)
        if one != other and isinstance(one, dict) and isinstance(other, dict):
            found += [f"{name}.{k}: is {one.get(k)!r}, should be {other.get(k)!r}"
                      for k in sorted(one.keys() | other.keys()) if one.get(k) != other.get(k)]  # fmt: skip
        elif one != other:
            found.append(f"{name}: is {one!r}, should be {other!r}")
    return found
