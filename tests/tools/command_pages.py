"""What the reference says of the command line, read from the program itself."""

from collections.abc import Iterator
from typing import Any, Final

import typer

EVERYWHERE: Final = "Everywhere"
"""The panel of the options that every command takes."""


def group() -> Any:
    """The `broker` command as its library sees it."""
    from broker.cli.entry import build  # noqa: PLC0415 - loading it takes a while

    return typer.main.get_command(build())


def leaves() -> dict[str, Any]:
    """Every command by its words."""
    from broker.cli.helping import flat  # noqa: PLC0415 - loading it takes a while

    return dict(flat(group()))


def commands() -> str:
    """Every command: usage, what it does, its arguments and options; first the options that all of them take."""
    found = leaves()
    shared = next(iter(found.values())).params
    parts = ["## Options of every command\n", *_options(p for p in shared if is_shared(p))]
    panel = ""
    for name, command in found.items():
        if command.rich_help_panel != panel:
            panel = command.rich_help_panel
            parts.append(f"\n## {panel}")
        parts += [
            f"\n### `broker {name}`\n",
            f"```text\n{_usage(name, command)}\n```\n",
            command.help.strip(),
            "",
        ]
        parts += list(_options(p for p in command.params if not is_shared(p)))
    return "\n".join(parts) + "\n"


def is_shared(parameter: Any) -> bool:
    """Whether every command takes it."""
    return getattr(parameter, "rich_help_panel", None) == EVERYWHERE or parameter.name == "help"


def _is_argument(parameter: Any) -> bool:
    return not parameter.opts[0].startswith("-")


def _usage(name: str, command: Any) -> str:
    words = ["broker", name]
    for parameter in command.params:
        if _is_argument(parameter):
            words.append(parameter.metavar or parameter.name.upper())
        elif parameter.required:
            words.append(f"{parameter.opts[0]} {_metavar(parameter)}")
    return " ".join((*words, "[OPTIONS]"))


def _metavar(parameter: Any) -> str:
    if parameter.metavar:
        return str(parameter.metavar)
    return "NUMBER" if isinstance(parameter.default, int | float) else "TEXT"


def _options(parameters: Iterator[Any]) -> Iterator[str]:
    for one in parameters:
        if _is_argument(one):
            head = f"`{one.metavar or one.name.upper()}`"
        else:
            value = "" if getattr(one, "is_flag", False) else f" {_metavar(one)}"
            head = f"`{', '.join((*one.opts, *one.secondary_opts))}{value}`"
        default = (
            one.default
            if isinstance(one.default, int | float | str) and not isinstance(one.default, bool)
            else None
        )
        tail = f" Default: {default}." if default not in (None, "") else ""
        yield f"- {head}: {one.help or ''}{tail}"
