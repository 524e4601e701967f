"""What `--help` says: one quiet page that fits a terminal, for the command line as a whole and for each command."""

from collections.abc import Iterator
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text
from typer.core import TyperCommand, TyperGroup

from .invocation import SHARED
from .screen import DIM, NAME, Screen, inset

WIDTH = 24
"""Columns for the names of options and commands."""


class Group(TyperGroup):
    """The command line as a whole, or the commands of two words that share the first."""

    def get_help(self, ctx: Any) -> str:
        """What commands there are, by what they are for."""
        grid = Table.grid(padding=(0, 2, 0, 0))
        for style in (DIM, NAME, ""):
            grid.add_column(style=style, overflow="fold")
        last = ""
        for name, command in self.commands.items():
            panel = str(getattr(command, "rich_help_panel", "") or "")
            grid.add_row("" if panel == last else panel, name, _first(command.help))
            last = panel
            if words := getattr(command, "commands", None):
                grid.add_row("", "", Text(", ".join(words), style=DIM))
        shared = "  ".join(
            f"{param.opts[0]} {param.metavar or ''}".strip() for param in self.params if param.name in SHARED
        )
        title = Text.assemble((ctx.command_path, NAME), " COMMAND [OPTIONS]")
        parts = [title, *_about(self), inset(grid)]
        if shared:
            parts.append(Text(f"\nWith each: {shared}", style=DIM))
        return _page(parts)


def flat(group: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """The commands of a group with their words, those of its own groups among them."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from flat(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


class Command(TyperCommand):
    """One command."""

    def get_help(self, ctx: Any) -> str:
        """What it does and what it takes."""
        arguments = [param for param in self.params if param.param_type_name == "argument"]
        usage = "".join(f" {param.metavar or param.name}" for param in arguments)
        parts: list[RenderableType] = [
            Text.assemble((ctx.command_path, NAME), f"{usage} [OPTIONS]"),
            *_about(self),
        ]
        if arguments:
            rows = [
                (str(param.metavar or param.name), str(getattr(param, "help", "") or ""))
                for param in arguments
            ]
            parts += [_rows(rows, WIDTH), ""]
        shared = [param for param in self.params if getattr(param, "rich_help_panel", None)]
        own = [row for param in self.params if param not in (*arguments, *shared) for row in _option(param)]
        everywhere = [row for param in shared for row in _option(param)]
        parts += [_rows(own, WIDTH), ""] if own else []
        parts += [Text("With every command", style=DIM), _rows(everywhere, WIDTH)]
        return _page(parts)


def _page(parts: list[RenderableType]) -> str:
    screen = Screen()
    with screen.out.capture() as page:
        screen.say(*parts)
    return page.get().rstrip("\n")


def _about(command: TyperGroup | TyperCommand) -> list[RenderableType]:
    return ["", inset(Text(" ".join((command.help or "").split()))), ""]


def _first(text: str | None) -> str:
    return (text or "").split("\n")[0].rstrip(".")


def _option(param: Any) -> Iterator[tuple[str, str]]:
    names = ", ".join(sorted(param.opts, key=len))
    metavar = param.metavar or ("" if param.is_flag else "N" if isinstance(param.default, int) else "TEXT")
    default = param.default if isinstance(param.default, int | float) and not param.is_flag else None
    must = " (needed)" if param.required else ""
    yield (
        f"{names} {metavar}".strip(),
        f"{param.help or ''}{must}{f' [{default}]' if default is not None else ''}",
    )


def _rows(rows: list[tuple[str, str]], width: int) -> RenderableType:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(min_width=width, overflow="fold")
    grid.add_column(overflow="fold")
    for name, text in rows:
        grid.add_row(Text(name), Text(text))
    return inset(grid)
