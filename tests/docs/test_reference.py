"""The reference names everything there is, and says of it what the code says."""

import re
from pathlib import Path
from typing import get_args

import pytest

import broker
from broker import errors
from broker.core import outcomes, states
from broker.core.answers import AnswerKind
from broker.core.kinds import InterruptionKind
from broker.core.limits import Limits
from broker.core.settings import Settings
from broker.store.keys import SEGMENTS
from broker.telemetry import CATALOGUE
from tests.docs.pages import ROOT, name_of, text_of
from tests.tools import command_pages, reference

KEY_ROW = re.compile(r"^\| `(?P<segment>[a-z-]+)(?::<(?P<name>\w+)>)?` \|", re.MULTILINE)
ERRORS = [
    kind for kind in vars(broker).values() if isinstance(kind, type) and issubclass(kind, errors.BrokerError)
]


@pytest.mark.parametrize("page", sorted(reference.PAGES.glob("*.md")), ids=name_of)
def test_the_generated_parts_fit_the_code(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert reference.fresh(text) == text, "run python -m tests.tools.reference"


def test_every_part_is_shown_somewhere() -> None:
    texts = "".join(text_of(page) for page in reference.PAGES.glob("*.md"))
    assert set(re.findall(r"<!-- generated: ([\w-]+),", texts)) == set(reference.PARTS)


def test_every_key_is_documented_once() -> None:
    rows = [
        (found["segment"], bool(found["name"]))
        for found in KEY_ROW.finditer(text_of("docs/reference/keys.md"))
    ]
    known = [(segment.strip(":"), segment.endswith(":")) for segment in SEGMENTS.values()]
    assert sorted(rows) == sorted(known)


@pytest.mark.parametrize(
    "words", [states.RunState, states.Settlement, states.CallState], ids=lambda w: w.__name__
)
def test_every_state_is_explained(words: type[states.RunState]) -> None:
    text = text_of("docs/reference/states.md")
    assert [word for word in words if f"\n| `{word}` |" not in text] == []


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("errors", [*errors.ERROR_CODES, *errors.OUTCOME_CODES]),
        ("errors", [kind.__name__ for kind in get_args(outcomes.Outcome)]),
        ("errors", [kind.__name__ for kind in ERRORS]),
        ("settings", [name for name in Settings.model_fields if name not in ("unknown", "limits")]),
        ("settings", list(Limits.__dataclass_fields__)),
        ("operations", list(CATALOGUE)),
        ("wire", [*AnswerKind, *InterruptionKind.VARIANTS, *states.CallState]),
    ],
)
def test_everything_is_named(page: str, names: list[str]) -> None:
    text = text_of(f"docs/reference/{page}.md")
    assert [name for name in names if f"`{name}`" not in text] == []


def test_every_command_and_option_is_named() -> None:
    text = text_of("docs/reference/cli.md")
    for name, command in command_pages.leaves().items():
        assert f"### `broker {name}`" in text
        section = text.partition(f"### `broker {name}`")[2].partition("\n#")[0]
        for parameter in command.params:
            names = [name for name in (*parameter.opts, parameter.metavar) if name]
            shared = command_pages.is_shared(parameter)
            assert any(word in (text if shared else section) for word in names), parameter.name


def test_every_variable_of_the_environment_is_named() -> None:
    found = set[str]()
    for path in (ROOT / "broker").rglob("*.py"):
        found |= set(re.findall(r"\bBROKER_[A-Z_]*[A-Z]\b", path.read_text(encoding="utf-8")))
    text = text_of("docs/reference/settings.md")
    assert [name for name in sorted(found) if f"`{name}`" not in text] == []


def test_promises_that_the_code_cites_are_listed() -> None:
    text = text_of("docs/design.md")
    assert [f"P{n}" for n in range(1, 16) if f"\n| P{n} |" not in text] == []


def test_the_changelog_has_a_heading_for_wire_and_keys() -> None:
    text = text_of("CHANGELOG.md")
    assert "### Wire and keys" in text
    assert text.startswith("# Changelog\n")
