"""swink's own folder: what its store promises, and what it leaves open between processes."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from broker import InterruptState, InvalidInput, PendingToolCall, UnknownId
from broker.errors import Unavailable
from broker.interop.swink import FileStore, InterruptStore, read_interrupt, write_interrupt

from .files import FILE, MODEL

STATE = read_interrupt(FILE)
ROOT = Path(__file__).resolve().parents[3]


def numbered(number: int) -> InterruptState:
    """An interrupt that says its number in every part."""
    call = PendingToolCall(tool_call_id=str(number), tool_name="shell", arguments="x" * (number % 7) * 4000)
    prompt = f"{number}{' ' * 20_000}"
    return InterruptState(
        interrupted_at=number, pending_tool_calls=(call,), system_prompt=prompt, model=MODEL
    )


async def readers(where: str, namespace: str, session: str, rounds: int) -> list[Any]:
    """Eight processes that read while the caller writes; what each of them saw."""
    started = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.seed_systems.swink.reading", where, namespace, session, str(rounds),
            cwd=ROOT, stdout=asyncio.subprocess.PIPE,
        )
        for _ in range(8)
    ]  # fmt: skip
    return [json.loads((await one.communicate())[0]) for one in started]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder in which session `th_2` has its file."""
    (tmp_path / "th_2.jsonl").write_text('{"id": "th_2"}\n')
    return tmp_path


@pytest.mark.row("S4", "S9")
async def test_S4_S9_a_file_is_an_active_interrupt_until_it_is_cleared(folder: Path) -> None:
    store, other = FileStore(folder), FileStore(str(folder))
    assert (store.sessions(), await other.load("th_2")) == ((), None)
    await store.save("th_2", STATE)
    assert (folder / "th_2.interrupt.json").read_bytes() == FILE
    assert (other.sessions(), await other.load("th_2")) == (("th_2",), STATE)
    assert [await other.clear("th_2"), await store.clear("th_2")] == [True, False]
    assert (store.sessions(), await store.load("th_2")) == ((), None)
    assert await store.clear("s_404") is False


@pytest.mark.row("S5")
async def test_S5_a_save_replaces_the_file_whole(folder: Path) -> None:
    store = FileStore(folder)
    await store.save("th_2", numbered(6))
    await store.save("th_2", numbered(8))
    assert await store.load("th_2") == numbered(8)
    assert {one.name for one in store.path("th_2").parent.glob("*")} - {".th_2.lock"} == {
        "th_2.interrupt.json",
        "th_2.jsonl",
    }


@pytest.mark.row("S6", "S7")
async def test_S6_S7_without_its_session_nothing_is_saved_and_an_orphan_is_none(folder: Path) -> None:
    store = FileStore(folder)
    with pytest.raises(UnknownId) as refused:
        await store.save("s_404", STATE)
    assert (refused.value.kind, refused.value.id, refused.value.code) == ("session", "s_404", "unknown")
    assert not store.path("s_404").exists()
    store.path("orphan").write_bytes(b"{")
    assert [await store.load(one) for one in ("s_404", "th_2", "orphan")] == [None, None, None]
    assert store.sessions() == ()


@pytest.mark.row("S8")
async def test_S8_a_file_that_does_not_parse_stays_and_counts(folder: Path) -> None:
    store = FileStore(folder)
    store.path("th_2").write_bytes(b'{"interrupted_at":')
    for _ in range(2):
        with pytest.raises(InvalidInput, match=r"^interrupt is no JSON"):
            await store.load("th_2")
    assert store.sessions() == ("th_2",)
    assert store.path("th_2").read_bytes() == b'{"interrupted_at":'


@pytest.mark.row("S10")
async def test_S10_a_session_goes_with_its_interrupt(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, seen = FileStore(folder), list[tuple[bool, bool]]()
    await store.save("th_2", STATE)
    unlink = Path.unlink

    def watched(path: Path, missing_ok: bool = False) -> None:  # noqa: FBT001, FBT002 - as it is called
        unlink(path, missing_ok=missing_ok)
        seen.append(((folder / "th_2.jsonl").exists(), store.path("th_2").exists()))

    monkeypatch.setattr(Path, "unlink", watched)
    assert await store.delete("th_2") is True
    assert seen == [(True, False), (False, False)], "never an interrupt without its session"
    assert await store.delete("th_2") is False


@pytest.mark.row("S11")
async def test_S11_readers_in_other_processes_see_one_file_or_the_other(folder: Path) -> None:
    store = FileStore(folder)
    await store.save("th_2", numbered(1))
    reading = asyncio.create_task(readers(str(folder), "", "th_2", 150))
    number = 1
    while not reading.done():
        number += 1
        await store.save("th_2", numbered(number))
    found = await reading
    assert [one["mixed"] for one in found] == [[]] * 8, "swink's own readers would have met a part of a file"
    assert max(one["seen"] for one in found) > 1, "no reader met a change"


@pytest.mark.row("S12")
@pytest.mark.parametrize("bad", ["", "a/b", "..", "a:b", "a\\b", "a\n"])
async def test_S12_no_path_is_made_of_an_id_that_is_none(folder: Path, bad: str) -> None:
    store = FileStore(folder)
    before = sorted(folder.parent.rglob("*"))
    for call in (store.load(bad), store.save(bad, STATE), store.clear(bad), store.delete(bad)):
        with pytest.raises(InvalidInput, match=r"^session "):
            await call
    with pytest.raises(InvalidInput, match=r"^session "):
        store.path(bad)
    assert sorted(folder.parent.rglob("*")) == before


@pytest.mark.row("S13")
async def test_S13_an_interrupt_without_pending_calls_is_one(folder: Path) -> None:
    store = FileStore(folder)
    empty = STATE.model_copy(update={"pending_tool_calls": ()})
    await store.save("th_2", empty)
    assert await store.load("th_2") == empty
    assert b'"pending_tool_calls": []' in write_interrupt(empty)


@pytest.mark.row("S15")
def test_S15_a_store_that_forgets_something_cannot_be_made() -> None:
    """Off: a default that saves nothing and loads none, as swink's trait has."""

    class Forgetful(InterruptStore):
        async def load(self, session: str) -> None:
            """Says that there is none."""

        async def clear(self, session: str) -> bool:
            return bool(session)

    with pytest.raises(TypeError, match=r"abstract methods '?delete'?, '?save'?"):
        Forgetful()  # type: ignore[abstract]


async def test_two_processes_do_not_write_at_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from broker.embedded.locks import exclusive  # noqa: PLC0415 - what the other process holds

    monkeypatch.setattr("broker.interop.swink.files._PATIENCE_SECONDS", 0.0)
    with exclusive(folder / ".th_2.lock", 1.0), pytest.raises(Unavailable, match="another process"):
        await FileStore(folder).save("th_2", STATE)
