"""What every command is given: where to go, who asks, how to speak.

The options for it may stand before or after the command's name.
"""

import asyncio
import contextlib
import functools
import getpass
import inspect
import logging
import os
import signal
import sys
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

from .._async.client import AsyncBroker
from ..core.answers import Principal
from ..core.settings import Settings
from ..errors import BrokerError, InvalidInput, Unavailable
from ..telemetry import Observer
from .faults import BROKEN_PIPE, INTERRUPTED, TERMINATED, UNEXPECTED, fault_json, unexpected
from .safe import safe
from .screen import Screen

PANEL = "Everywhere"
PATIENCE_SECONDS = 3.0
URLS = "redis://, rediss:// or unix://, as in redis://user:password@host:6379/0"

Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        metavar="URL",
        rich_help_panel=PANEL,
        help="The server; else BROKER_URL, else the embedded one.",
    ),
]
Namespace = Annotated[
    str | None,
    typer.Option(
        "--namespace", metavar="NAME", rich_help_panel=PANEL, help="Else BROKER_NAMESPACE, else 'default'."
    ),
]
As = Annotated[
    str | None,
    typer.Option(
        "--as", metavar="NAME", rich_help_panel=PANEL, help="Who you are, unverified; else your user name."
    ),
]
Json = Annotated[
    bool | None,
    typer.Option("--json", rich_help_panel=PANEL, help="One JSON value on standard output; faults too."),
]
Debug = Annotated[
    bool | None,
    typer.Option("--debug", rich_help_panel=PANEL, help="Show where a fault came from, and the log."),
]

SHARED = {"url": Url, "namespace": Namespace, "as_": As, "json_": Json, "debug": Debug}


@dataclass(frozen=True)
class Invocation:
    """One command line: what it shares with all others. `url` is what was given by hand, not the environment's."""

    url: str | None = None
    namespace: str | None = None
    name: str | None = None
    debug: bool = False
    screen: Screen = field(default_factory=Screen)

    @contextlib.asynccontextmanager
    async def broker(
        self, *, create: bool = False, observer: Observer | None = None
    ) -> AsyncIterator[AsyncBroker]:
        """The broker of this command line's namespace, open. Raises what opening raises.

        Only with `create` is a namespace made that is not there: whoever looks at one mistyped it, and must not settle
        its settings.
        """
        url = check_url(self.url or os.environ.get("BROKER_URL") or None)
        # The first call may start the embedded server, which blocks for a moment.
        made = await self.screen.busy(
            "starting the server ...", asyncio.to_thread(self._make, url, create, observer)
        )
        try:
            await self.screen.busy("looking for the server ...", _opened(made, url))
            yield made
        finally:
            await made.aclose()

    def _make(self, url: str | None, create: bool, observer: Observer | None) -> AsyncBroker:  # noqa: FBT001
        wanted = any(os.environ.get(f"BROKER_{name.upper()}") for name in Settings.model_fields)
        return AsyncBroker(
            url,
            namespace=self.namespace or os.environ.get("BROKER_NAMESPACE") or "default",
            settings=Settings.from_env(os.environ) if wanted else None,
            by=self.principal(),
            patience=PATIENCE_SECONDS,
            create=create,
            observer=observer,
        )

    def principal(self) -> Principal:
        """Who asks: the name given, else the user of this machine. Nobody checked it, so it is not verified."""
        try:
            return Principal.local(self.name or _user())
        except InvalidInput as fault:
            wrong = InvalidInput("--as", fault.problem, fault.allowed)
        raise wrong


Command = Callable[..., Awaitable[int | None]]


def command(function: Command) -> Callable[..., int]:
    """A command for typer from an async function whose first parameter is its `Invocation`.

    It gets the shared options beside its own, and gives the exit code: nothing that is raised gets out.
    """

    @functools.wraps(function)
    def run(context: typer.Context, **given: Any) -> int:
        before: dict[str, Any] = context.obj or {}
        shared = {name: given.pop(name) for name in SHARED}
        told = {name: before.get(name) if value is None else value for name, value in shared.items()}
        invocation = Invocation(
            url=told["url"], namespace=told["namespace"], name=told["as_"], debug=bool(told["debug"]),
            screen=Screen(as_json=bool(told["json_"])),
        )  # fmt: skip
        return guarded(invocation, function, given)

    own = list(inspect.signature(function).parameters.values())[1:]
    keyword = inspect.Parameter.KEYWORD_ONLY
    context = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    shared = [
        inspect.Parameter(name, keyword, default=None, annotation=kind) for name, kind in SHARED.items()
    ]
    parameters = [context, *own, *shared]
    run.__signature__ = inspect.Signature(parameters, return_annotation=int)  # type: ignore[attr-defined]
    return run


def guarded(invocation: Invocation, function: Command, given: dict[str, Any]) -> int:
    """Runs a command; whatever goes wrong becomes a sentence and an exit code."""
    try:
        with _logged(on_screen=invocation.debug):
            code = asyncio.run(_whole(function(invocation, **given)))
        sys.stdout.flush()
    except BrokenPipeError:
        return silence()
    except KeyboardInterrupt:
        return INTERRUPTED
    except asyncio.CancelledError:
        return TERMINATED
    except BrokerError as error:
        return complain(invocation.screen, error, str(error), fault_json(error), debug=invocation.debug)
    except Exception as error:  # noqa: BLE001 - a person gets a sentence
        return complain(invocation.screen, error, *unexpected(error), debug=invocation.debug)
    return code or 0


async def _whole(work: Awaitable[int | None]) -> int | None:
    """The command, which ends in order when it is told to terminate: what it has started is stopped."""
    task = asyncio.current_task()
    if task is not None:
        with contextlib.suppress(
            NotImplementedError, RuntimeError, ValueError
        ):  # Windows, or not the main thread
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await work


@contextlib.contextmanager
def _logged(*, on_screen: bool) -> Iterator[None]:
    """The library's log goes to standard error, or nowhere: a person gets sentences."""
    log = logging.getLogger("broker")
    handler = logging.StreamHandler() if on_screen else logging.NullHandler()
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


def complain(
    screen: Screen, error: BaseException, sentence: str, as_json: str, *, debug: bool = False
) -> int:
    """Tells a fault in the way that was asked for, and gives its exit code."""
    if debug:
        traceback.print_exception(error)
    if screen.as_json:
        sys.stderr.write(as_json + "\n")
    else:
        screen.complain(sentence)
    return error.exit_code if isinstance(error, BrokerError) else UNEXPECTED


def silence() -> int:
    """Whoever read our output has gone: end without a word, and let nothing else be written at the end."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return BROKEN_PIPE


def check_url(url: str | None) -> str | None:
    """A URL of a form that can be tried. Its text is not repeated, since there may be a password in it."""
    if url is None:
        return None
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        parts = None
    if parts is None or parts.scheme not in ("redis", "rediss", "unix"):
        raise InvalidInput("url", "cannot be read", URLS)
    database = parts.path.removeprefix("/")
    if parts.scheme != "unix" and database and not database.isdecimal():
        raise InvalidInput("url", "names a database that is no number", URLS)
    return url


async def _opened(broker: AsyncBroker, url: str | None) -> None:
    """Opens a broker; what is wrong with the server's address is said with the address."""
    try:
        await broker.open()
    except Unavailable as fault:
        where = f" at {without_secrets(url)}" if url else ""
        raise Unavailable(f"{fault.reason}{where}", unsure=fault.unsure) from None
    except (TypeError, ValueError):
        if url is None or "?" not in url:
            raise
        raise InvalidInput("url", "has options that the client does not take", URLS) from None


def without_secrets(url: str) -> str:
    """A URL that may be shown: neither user nor password, and no options, which may hold either."""
    parts = urlsplit(url)
    return safe(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}")


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a process whose user has no name
        return f"uid {os.getuid()}" if hasattr(os, "getuid") else "unknown"
