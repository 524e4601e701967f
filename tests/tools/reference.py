"""Write the generated parts of the reference pages, or tell (`--check`) which of them no longer fit the code.

A part stands between `<!-- generated: NAME -->` and `<!-- end -->`; what is around it is written by hand.
"""

import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Final, get_args

from broker import errors, telemetry
from broker.core import limits, outcomes, schema, settings, states
from broker.gateway import GatewaySettings
from broker.interop.agui import rules
from broker.store import namespace, scripts
from broker.telemetry.metrics import COUNTED, GAUGES, HTTP, Metric
from tests.tools import command_pages, http_pages

ROOT: Final = Path(__file__).resolve().parents[2]
PAGES: Final = ROOT / "docs" / "reference"

_PART: Final = re.compile(
    r"(<!-- generated: (?P<name>[\w-]+), by tests/tools/reference.py -->\n).*?(?=<!-- end -->)", re.DOTALL
)
_ROWS: Final = re.compile(r" \((?:rules? \d+|[A-Z]\d+)(?:, (?:rules? \d+|[A-Z]\d+))*\)")
"""Rows of the project's lists of rules and features, as docstrings cite them."""


def table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


# States ----------------------------------------------------------------------------------------------------------


def diagram(record: states.Record) -> str:
    """The state diagram of one of the three machines, drawn by GitHub."""
    arrows: dict[tuple[str, str], list[str]] = {}
    for row in states.TRANSITIONS:
        if row.record is record:
            for after in row.after:
                arrows.setdefault((row.before or "[*]", after), []).append(row.operation)
    lines = [f"    {old} --> {new}: {', '.join(names)}" for (old, new), names in arrows.items()]
    closed: frozenset[str] = (
        states.CLOSED | states.SETTLED if record is not states.Record.CALL else frozenset()
    )
    lines += [f"    {state} --> [*]" for state in _order(record) if state in closed]
    return "```mermaid\nstateDiagram-v2\n" + "\n".join(lines) + "\n```\n"


def _order(record: states.Record) -> list[str]:
    words = {
        states.Record.RUN: states.RunState,
        states.Record.INTERRUPT: states.Settlement,
        states.Record.CALL: states.CallState,
    }
    return [str(word) for word in words[record]]


def moves(record: states.Record) -> str:
    """Every permitted move of one of the three machines, as the diagram shows them."""
    rows = (
        (f"`{row.operation}`", f"`{row.before}`" if row.before else "(new)", _words(row.after))
        for row in states.TRANSITIONS
        if row.record is record
    )
    return table(("operation", "from", "to"), rows)


def _words(words: tuple[str, ...]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def machine(record: states.Record) -> Callable[[], str]:
    """Diagram and table of one machine."""
    return lambda: f"{diagram(record)}\n{moves(record)}"


# Errors and outcomes -----------------------------------------------------------------------------------------------


def first_line(thing: object) -> str:
    """The first sentence of a docstring."""
    return _ROWS.sub("", (inspect.getdoc(thing) or "").split("\n\n")[0].replace("\n", " "))


def error_table() -> str:
    """Every error with its code and what the edges answer for it."""
    kinds = [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.BrokerError)
    ]
    rows = (
        (
            f"`{kind.__name__}`",
            f"`{kind.code}`" if kind is not errors.Refused else "that of its outcome",
            str(kind.http) if kind is not errors.Refused else "its outcome's",
            str(kind.exit_code) if kind is not errors.Refused else "its outcome's",
            ", ".join(f"`{name}`" for name in getattr(kind, "__dataclass_fields__", {})),
            first_line(kind),
        )
        for kind in kinds
    )
    return table(("error", "`code`", "HTTP", "exit", "facts", "what it says"), rows)


def outcome_table() -> str:
    """Every outcome with its code and what the edges answer for it."""
    rows = (
        (
            f"`{kind.__name__}`",
            f"`{kind.code}`",
            "yes" if kind.ok else "no",
            str(errors.OUTCOME_CODES[kind.code].http),
            str(errors.OUTCOME_CODES[kind.code].exit_code),
            ", ".join(f"`{name}`" for name in kind.model_fields if name != "unknown"),
            first_line(kind),
        )
        for kind in get_args(outcomes.Outcome)
    )
    return table(("outcome", "`code`", "`ok`", "HTTP", "exit", "facts", "what it says"), rows)


# Settings ------------------------------------------------------------------------------------------------------------


def told(owner: type) -> dict[str, str]:
    """What the source says below each field of a class."""
    body = ast.parse(inspect.getsource(owner)).body[0]
    assert isinstance(body, ast.ClassDef)
    found: dict[str, str] = {}
    for field, after in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            found[field.target.id] = _ROWS.sub("", " ".join(_text_of(after).split()))
    return found


def _text_of(node: ast.stmt) -> str:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return str(node.value.value)
    return ""


def shown(value: object) -> str:
    """A default with its unit."""
    if isinstance(value, timedelta):
        for unit, seconds in (("d", 86400), ("h", 3600), ("min", 60)):
            if value.total_seconds() >= seconds and not value.total_seconds() % seconds:
                return f"{value.total_seconds() / seconds:g} {unit}"
        return f"{value.total_seconds():g} s"
    return "by the server" if value is None else str(value)


def setting_table() -> str:
    """Every setting with its default, its variable and who keeps it."""
    texts = told(settings.Settings)
    names = [name for name in settings.Settings.model_fields if name not in ("unknown", "limits")]
    defaults = settings.Settings()
    rows = (
        (
            f"`{name}`",
            shown(getattr(defaults, name)),
            f"`BROKER_{name.upper()}`",
            "namespace" if name in (*namespace.KEPT, "durability") else "process",
            texts[name],
        )
        for name in names
    )
    return table(("field", "default", "variable", "kept by", "meaning"), rows)


def limit_table() -> str:
    """Every limit with its default and unit."""
    texts = told(limits.Limits)
    units = {"chars": "characters", "bytes": "bytes"}
    rows = (
        (
            f"`{name}`",
            f"{getattr(limits.LIMITS, name):,}",
            units.get(name.rpartition("_")[2], "count"),
            texts[name],
        )
        for name in limits.Limits.__dataclass_fields__
    )
    return table(("field", "default", "unit", "meaning"), rows)


# Scripts -----------------------------------------------------------------------------------------------------------


def header(name: str) -> dict[str, str]:
    """The comment at the head of a script: what it is for, its keys, arguments and replies."""
    parts, current = {"": ""}, ""
    for line in (PACKAGE / "store" / "lua" / f"{name}.lua").read_text(encoding="utf-8").splitlines():
        if not line.startswith("--") or line.startswith("--@"):
            break
        text = " ".join(line[2:].split())
        head = re.match(r"(KEYS|ARGV|Reply per item:)\s*", text)
        if head:
            current = head[1].removesuffix(" per item:")
            text = text[head.end() :]
            parts[current] = ""
        parts[current] = f"{parts[current]} {text}".strip()
    return parts


PACKAGE: Final = ROOT / "broker"


def script_list() -> str:
    """The header of every script."""
    found = []
    for name in scripts.names():
        parts = header(name)
        purpose = parts[""].removeprefix(f"{name}:").strip()
        found.append(f"### `{name}`\n\n{purpose[0].upper()}{purpose[1:]}\n")
        for head, word in (("KEYS", "keys"), ("ARGV", "arguments"), ("Reply", "reply")):
            found.append(f"- **{word}**: {_plain(parts[head])}")
        limit = "refused" if name in scripts.CREATES else "still runs"
        found.append(f"- **at the memory limit**: {limit}\n")
    return "\n".join(found)


def _plain(text: str) -> str:
    return text.replace("|", "·").replace("<", "&lt;")


def catalogue() -> str:
    """Every operation that an observer is told of."""
    return table(("operation", "what it does"), ((f"`{k}`", v) for k, v in telemetry.CATALOGUE.items()))


# Records -----------------------------------------------------------------------------------------------------------


def metric_table(metrics: Sequence[Metric]) -> Callable[[], str]:
    """Metrics with their labels and what they say."""

    def made() -> str:
        rows = (
            (f"`{one.name}`", one.sort.value, ", ".join(f"`{label}`" for label in one.labels), one.says)
            for one in metrics
        )
        return table(("metric", "sort", "labels", "what it says"), rows)

    return made


def record_table() -> str:
    """Every record with its fields, the required ones first."""
    rows = []
    told = {kind.__name__ for kind in get_args(outcomes.Outcome)}
    for name, one in sorted(schema.schemas().items()):
        if name in told or "properties" not in one:
            continue  # outcomes are in errors.md, a durability is text
        fields, required = list(one.get("properties", {})), one.get("required", [])
        rows.append(
            (
                f"`{name}`",
                ", ".join(f"`{field}`" for field in fields if field in required),
                ", ".join(f"`{field}`" for field in fields if field not in required),
            )
        )
    return table(("type", "always there", "there where set"), iter(rows))


def stream_rules() -> str:
    """Every rule that a stream of AG-UI events is held against."""
    rows = ((f"`{one.word}`", one.level.value, one.says, f"`{one.page}`") for one in rules.Rule)
    return table(("rule", "level", "what it says", "page of the specification"), rows)


# HTTP --------------------------------------------------------------------------------------------------------------


def routes() -> str:
    """Every route of the HTTP interface."""
    return table(("route", "scope", "takes", "gives", "what it does"), http_pages.route_rows())


def bodies() -> str:
    """Every body that is sent to it."""
    return table(("body", "always", "where wanted"), http_pages.body_rows())


def http_problems() -> str:
    """What HTTP itself refuses."""
    return table(("`code`", "HTTP", "what it says"), http_pages.problem_rows())


def gateway_numbers() -> str:
    """The numbers of a gateway."""
    return table(("number", "usual", "what it is"), http_pages.number_rows(told(GatewaySettings)))


PARTS: Final[dict[str, Callable[[], str]]] = {
    "run": machine(states.Record.RUN),
    "interrupt": machine(states.Record.INTERRUPT),
    "call": machine(states.Record.CALL),
    "errors": error_table,
    "outcomes": outcome_table,
    "settings": setting_table,
    "limits": limit_table,
    "scripts": script_list,
    "operations": catalogue,
    "metrics-levels": metric_table(GAUGES),
    "metrics-counted": metric_table(COUNTED),
    "metrics-http": metric_table(HTTP),
    "records": record_table,
    "commands": command_pages.commands,
    "stream-rules": stream_rules,
    "http-routes": routes,
    "http-bodies": bodies,
    "http-problems": http_problems,
    "http-numbers": gateway_numbers,
}


def fresh(text: str) -> str:
    """A page with its generated parts as the code is now."""
    return _PART.sub(lambda found: f"{found[1]}\n{PARTS[found['name']]()}\n", text)


def main(arguments: list[str]) -> int:
    """Write the pages, or with `--check` name those that would change."""
    stale = []
    for page in sorted(PAGES.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        if (new := fresh(text)) != text:
            stale.append(page)
            if "--check" not in arguments:
                page.write_text(new, encoding="utf-8")
    for page in stale:
        print(f"{page.relative_to(ROOT)}: {'stale' if '--check' in arguments else 'written'}")
    return int(bool(stale) and "--check" in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
