from pathlib import Path

import pytest

from tests.tools import unasync

ASYNC = '''"""A source."""

from collections.abc import AsyncIterator

from .._async._runtime import pause


class AsyncBroker:
    async def __aenter__(self) -> "AsyncBroker":
        return self

    async def rows(self) -> AsyncIterator[int]:
        async with self:
            async for row in self.more():
                yield await pause(
                    row,
                )
'''

SYNC = '''# Generated from broker/_async/client.py by tests/tools/unasync.py (make sync): do not edit.
"""A source."""

from collections.abc import Iterator

from .._async._runtime import pause


class Broker:
    def __enter__(self) -> "Broker":
        return self

    def rows(self) -> Iterator[int]:
        with self:
            for row in self.more():
                yield pause(
                    row,
                )
'''


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    used: set[str] = set()
    unasync.convert(ASYNC, used)
    monkeypatch.setattr(unasync, "SUBSTITUTIONS", [row for row in unasync.SUBSTITUTIONS if row[0] in used])
    for folder in ("broker/_async", "broker/_sync"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "_runtime.py").write_text("by_hand = True\n")
    (tmp_path / "broker/_async/client.py").write_text(ASYNC)
    assert unasync.write(tmp_path) == 1
    return tmp_path


def test_the_committed_twin_is_what_its_sources_say() -> None:
    assert unasync.check(unasync.ROOT) == []


def test_the_blocking_text(checkout: Path) -> None:
    assert (checkout / "broker/_sync/client.py").read_text() == SYNC
    assert unasync.check(checkout) == []


def test_files_written_by_hand_are_left_alone(checkout: Path) -> None:
    assert (checkout / "broker/_sync/_runtime.py").read_text() == "by_hand = True\n"
    (checkout / "broker/_sync/_runtime.py").unlink()
    assert len(unasync.check(checkout)) == 1


@pytest.mark.parametrize("edit", [SYNC + "x = 1\n", SYNC.replace("rows", "columns"), SYNC.rstrip("\n"), ""])
def test_an_edited_twin_is_noticed(checkout: Path, edit: str) -> None:
    (checkout / "broker/_sync/client.py").write_text(edit)
    assert len(unasync.check(checkout)) == 1


def test_a_missing_twin_is_noticed(checkout: Path) -> None:
    (checkout / "broker/_sync/client.py").unlink()
    assert unasync.check(checkout) == ["broker/_sync/client.py is missing"]


def test_a_twin_without_a_source_is_noticed_and_removed(checkout: Path) -> None:
    (checkout / "broker/_sync/extra.py").write_text("")
    assert unasync.check(checkout) == ["broker/_sync/extra.py has no source in broker/_async"]
    unasync.write(checkout)
    assert unasync.check(checkout) == []


def test_a_substitution_that_changes_nothing_is_an_error(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unasync, "SUBSTITUTIONS", [*unasync.SUBSTITUTIONS, (r"\bnowhere\b", "here")])
    with pytest.raises(unasync.Problem, match="nowhere"):
        unasync.check(checkout)


def test_imports_are_put_in_order_again(checkout: Path) -> None:
    source = "from collections.abc import AsyncIterator, Callable\n\n__all__ = [AsyncIterator, Callable]\n"
    (checkout / "broker/_async/order.py").write_text(source)
    unasync.write(checkout)
    assert "import Callable, Iterator\n" in (checkout / "broker/_sync/order.py").read_text()


@pytest.mark.parametrize(
    ("source", "blocking"),
    [
        ("(await a(), await b())", "(a(), b())"),
        ("not_async_at_all", "not_async_at_all"),
    ],
)
def test_lines(source: str, blocking: str) -> None:
    assert unasync.convert(source, set()) == blocking
