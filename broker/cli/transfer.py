"""`import` and `export`: interrupt files of swink into pauses of runs, and pauses into files."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from ..core.limits import JSON, LIMITS
from ..errors import InvalidInput, UnknownId
from ..interop._files import write_whole
from ..interop.swink import SUFFIX, BrokerStore, FileStore, read_interrupt, write_interrupt
from .given import read_span
from .invocation import Invocation
from .screen import count

_MOST = LIMITS.state_bytes * 8  # as text; what is stored is checked by the library
_STANDARD_INPUT = "-"

Session = Annotated[str, typer.Argument(metavar="SESSION", help="The session's id.", show_default=False)]


Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE...",
        help=f"SESSION{SUFFIX}, a folder with such files, or - for standard input.",
        show_default=False,
    ),
]
OfSession = Annotated[
    str | None, typer.Option(metavar="SESSION", help="Of this session, whatever the file's name is.")
]
ExpiresIn = Annotated[
    str | None, typer.Option(metavar="SPAN", help="How long its questions wait; else for ever.")
]
Replace = Annotated[
    bool,
    typer.Option("--replace", help="In the place of what the session waits for now.", show_default=False),
]


async def import_(
    cli: Invocation,
    files: Files,
    *,
    session: OfSession = None,
    agent: Annotated[str, typer.Option(help="Who goes on with it.")] = "swink",
    queue: Annotated[str, typer.Option(help="In which worker pool.")] = "agents",
    expires_in: ExpiresIn = None,
    replace: Replace = False,
) -> None:
    """Makes pauses of swink's interrupt files.

    The files stay where they are; their pending calls are asked about. Files without their session's own file beside
    them are passed over, unless --session names it. All files are read before anything is written.
    """
    found, orphans = _found(files, session)
    for name, data in found.items():
        _check(name, data)
    told: list[JSON] = []
    span = read_span("--expires-in", expires_in)
    async with cli.broker(create=True) as broker:
        store = BrokerStore(broker, agent=agent, queue=queue, expires_in=span)
        for name, data in found.items():
            outcome = await store.import_file(name, data, replace=replace)
            told.append({"session": name, "outcome": outcome.to_json()})
            before = " It was imported before." if outcome.code == "replayed" else ""
            _say(
                cli, f"{name}: {count(len(outcome.interrupt_ids), 'question')}, run {outcome.run_id}.{before}"
            )
    for name in orphans:
        told.append({"session": name, "outcome": None})
        _say(cli, f"{name}: passed over, its session has no file.")
    if cli.screen.as_json:
        cli.screen.give(told)


async def export(
    cli: Invocation,
    session: Session,
    *,
    run: Annotated[
        str | None, typer.Option(metavar="RUN", help="Which run, where several of the session wait.")
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="A file, or a folder; else standard output.", show_default=False),
    ] = None,
) -> None:
    """Writes what a session waits for as swink's interrupt file.

    The pause stays as it is. A file is written whole or not at all.
    """
    async with cli.broker() as broker:
        state = await BrokerStore(broker).load(session, run_id=run)
    if state is None:
        raise UnknownId("interrupt of session", session)
    data = write_interrupt(state)
    if to is None:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    path = to / f"{session}{SUFFIX}" if to.is_dir() else to
    try:
        write_whole(path, data)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InvalidInput("--to", f"cannot be written ({reason})", "a file or a folder") from None
    if cli.screen.as_json:
        cli.screen.give({"session": session, "file": str(path), "bytes": len(data)})
    else:
        _say(cli, f"{path}: {len(data)} bytes.")


def _say(cli: Invocation, sentence: str) -> None:
    if not cli.screen.as_json:
        cli.screen.say(sentence)


def _found(files: list[str], session: str | None) -> tuple[dict[str, bytes], list[str]]:
    """The files' bytes by session, and the sessions of orphans."""
    found: dict[str, bytes] = {}
    orphans: list[str] = []
    for path in _paths(files):
        name = session or path.name.removesuffix(SUFFIX)
        if session is None and (path.name == name or str(path) == _STANDARD_INPUT):
            raise InvalidInput("file", "has no name that tells a session", f"SESSION{SUFFIX}, or --session")
        if name in found:
            raise InvalidInput("file", "is the second one of its session", "one file for each session")
        if session is None and name not in FileStore(path.parent).sessions() and path.exists():
            orphans.append(name)
        else:
            found[name] = _bytes(path)
    return found, orphans


def _paths(files: list[str]) -> list[Path]:
    given = [Path(name) for name in files]
    return [one for path in given for one in (sorted(path.glob(f"*{SUFFIX}")) if path.is_dir() else [path])]


def _bytes(path: Path) -> bytes:
    try:
        if str(path) == _STANDARD_INPUT:
            data = sys.stdin.buffer.read(_MOST + 1)
        else:
            with path.open("rb") as file:
                data = file.read(_MOST + 1)
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or "not a name of a file"
        raise InvalidInput("file", f"cannot be read ({reason})", "a file that is there") from None
    if len(data) > _MOST:
        raise InvalidInput("file", "is too long", f"at most {LIMITS.state_bytes} bytes when stored")
    return data


def _check(session: str, data: bytes) -> None:
    try:
        read_interrupt(data)
    except InvalidInput as fault:
        wrong = fault.inside(session)
    else:
        return
    raise wrong
