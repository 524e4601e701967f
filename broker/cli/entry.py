"""The command line as a whole: its commands in the order of the help, and faults in the words themselves."""

import contextlib
import io
import sys
from collections.abc import Callable, Sequence
from importlib import metadata
from typing import Annotated, Any

import typer

from . import (
    agui,
    answering,
    diagnosing,
    gateway,
    helping,
    hooks,
    looking,
    operating,
    replay,
    serving,
    transfer,
)
from .demo.command import demo
from .faults import INTERRUPTED, UNEXPECTED, unexpected
from .invocation import As, Debug, Json, Namespace, Url, command, complain, silence
from .safe import machine_json
from .screen import Screen

USAGE = 2

COMMANDS: tuple[tuple[str, str, Callable[..., Any]], ...] = (
    ("Look", "ls", looking.ls),
    ("Look", "show", looking.show),
    ("Look", "history", looking.history),
    ("Look", "why", diagnosing.why),
    ("Answer", "approve", answering.approve),
    ("Answer", "reject", answering.reject),
    ("Answer", "respond", answering.respond),
    ("Answer", "complete", answering.complete),
    ("Answer", "fail", answering.fail),
    ("Answer", "cancel", answering.cancel),
    ("Operate", "status", operating.status),
    ("Operate", "check", diagnosing.check),
    ("Operate", "dead", operating.dead),
    ("Operate", "requeue", operating.requeue),
    ("Operate", "move", operating.move),
    ("Operate", "withdraw", operating.withdraw),
    ("Operate", "import", transfer.import_),
    ("Operate", "export", transfer.export),
    ("Server", "serve", gateway.serve),
    ("Server", "up", serving.up),
    ("Server", "down", serving.down),
    ("Try", "demo", demo),
    ("Try", "replay", replay.replay),
    ("Keys", "keys create", gateway.keys_create),
    ("Keys", "keys list", gateway.keys_list),
    ("Keys", "keys rotate", gateway.keys_rotate),
    ("Keys", "keys revoke", gateway.keys_revoke),
    ("Keys", "signing list", gateway.signing_list),
    ("Keys", "signing rotate", gateway.signing_rotate),
    ("Keys", "signing drop", gateway.signing_drop),
    ("Webhooks", "hooks create", hooks.create),
    ("Webhooks", "hooks list", hooks.list_),
    ("Webhooks", "hooks rotate", hooks.rotate),
    ("Webhooks", "hooks enable", hooks.enable),
    ("Webhooks", "hooks delete", hooks.delete),
    ("Webhooks", "hooks lost", hooks.lost),
    ("Webhooks", "hooks replay", hooks.replay),
    ("Webhooks", "hooks send", hooks.send),
    ("Interop", "agui check", agui.check),
)

"""Every command: what it is for, its words, and what it does."""
GROUPS = {
    "agui": "What concerns AG-UI, the protocol between agents and users.",
    "hooks": "Who is told of what happens, by signed webhooks.",
    "keys": "The API keys of a namespace: who may use its gateway.",
    "signing": "The keys that a namespace signs tokens and sessions with.",
}
"""The commands of two words, by their first."""


def build() -> typer.Typer:
    """The command line, ready to be run."""
    app = typer.Typer(
        name="broker", add_completion=False, pretty_exceptions_enable=False, cls=helping.Group,
        context_settings={"help_option_names": ["-h", "--help"]},
    )  # fmt: skip
    app.callback(invoke_without_command=True)(_start)
    groups: dict[str, typer.Typer] = {"": app}
    for panel, words, function in COMMANDS:
        group, _, name = words.rpartition(" ")
        if group not in groups:
            groups[group] = typer.Typer(name=group, cls=helping.Group, help=GROUPS[group])
            app.add_typer(groups[group], rich_help_panel=panel)
        groups[group].command(name, cls=helping.Command, rich_help_panel=panel)(command(function))
    return app


def _start(
    context: typer.Context,
    *,
    url: Url = None,
    namespace: Namespace = None,
    as_: As = None,
    json_: Json = None,
    debug: Debug = None,
    version: Annotated[bool, typer.Option("--version", help="Tell the version.")] = False,
) -> int:
    """Agents pause, people answer, other workers go on. `--help` after a command says more."""
    context.obj = {"url": url, "namespace": namespace, "as_": as_, "json_": json_, "debug": debug}
    if context.invoked_subcommand is None:
        told = metadata.version("interrupt-broker")
        as_told = machine_json({"version": told}) if json_ else f"interrupt-broker {told}"
        typer.echo(as_told if version else context.get_help())
    return 0


def run(words: Sequence[str]) -> int:
    """The exit code of a command line; never raises."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            with contextlib.suppress(OSError, ValueError):
                stream.reconfigure(errors="backslashreplace")
    own = words[: words.index("--")] if "--" in words else words
    screen = Screen(as_json="--json" in own)
    try:
        program = typer.main.get_command(build())
        code = program.main(args=list(words), prog_name="broker", standalone_mode=False)
        sys.stdout.flush()
    except typer.TyperException as error:
        return _misused(screen, error)
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        return silence()
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else UNEXPECTED
    except Exception as error:  # noqa: BLE001 - a person gets a sentence
        return complain(screen, error, *unexpected(error), debug="--debug" in own)
    return code if isinstance(code, int) else 0


def _misused(screen: Screen, error: typer.TyperException) -> int:
    message = error.format_message()
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "broker"
    if screen.as_json:
        facts = {"code": "invalid", "exit_code": USAGE, "message": message, "field": "command line",
                 "problem": message, "allowed": f"see {path} --help"}  # fmt: skip
        sys.stderr.write(machine_json(facts) + "\n")
    else:
        screen.complain(message)
        screen.note(f"        {path} --help tells what it takes.")
    return USAGE
