"""Tell which files, functions and classes have outgrown the house: no exceptions.

Generated files (the blocking twin) are not written by hand and not counted. A docstring does not count towards
the length of its function.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]

FOLDERS: Final = ("broker", "tests", "benchmarks")
GENERATED: Final = ("broker/_sync/", "tests/clients/_sync/")
HAND_WRITTEN: Final = "_runtime.py"

MODULE_LINES: Final = 400
SCRIPT_LINES: Final = 120
PRELUDE_LINES: Final = 400
FUNCTION_LINES: Final = 40
PUBLIC_METHODS: Final = 15

Function = ast.FunctionDef | ast.AsyncFunctionDef


def hand_written(root: Path, suffix: str) -> Iterator[tuple[str, str]]:
    """Name relative to the checkout, and text, of every file with the suffix that somebody wrote."""
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob(f"*{suffix}")):
            name = path.relative_to(root).as_posix()
            if path.name == HAND_WRITTEN or not name.startswith(GENERATED):
                yield name, path.read_text(encoding="utf-8")


def body_lines(function: Function) -> int:
    """Lines from `def` to the end, without the docstring."""
    length = (function.end_lineno or function.lineno) - function.lineno + 1
    if ast.get_docstring(function, clean=False) is not None:
        first = function.body[0]
        length -= (first.end_lineno or first.lineno) - first.lineno + 1
    return length


def public_methods(node: ast.ClassDef) -> int:
    """Methods that a user may call; properties are read, not called."""
    methods = [item for item in node.body if isinstance(item, Function) and not item.name.startswith("_")]
    return sum(not method.decorator_list or not _is_property(method) for method in methods)


def _is_property(method: Function) -> bool:
    names = {ast.unparse(decorator).rpartition(".")[2] for decorator in method.decorator_list}
    return bool(names & {"property", "cached_property", "setter", "overload"})


def too_big_inside(name: str, text: str) -> Iterator[str]:
    """Complaints about the functions and classes of one module of the library."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, Function) and (lines := body_lines(node)) > FUNCTION_LINES:
            yield f"{name}:{node.lineno}: {node.name} has {lines} lines, {FUNCTION_LINES} allowed"
        if isinstance(node, ast.ClassDef) and (count := public_methods(node)) > PUBLIC_METHODS:
            yield f"{name}:{node.lineno}: {node.name} has {count} public methods, {PUBLIC_METHODS} allowed"


def complaints(root: Path = ROOT) -> list[str]:
    """One line per file, function or class that is too big; empty when all is well."""
    found = []
    for name, text in hand_written(root, ".py"):
        if (lines := len(text.splitlines())) > MODULE_LINES:
            found.append(f"{name}: {lines} lines, {MODULE_LINES} allowed")
        if name.startswith("broker/"):
            found.extend(too_big_inside(name, text))
    for name, text in hand_written(root, ".lua"):
        allowed = PRELUDE_LINES if name.endswith("/_prelude.lua") else SCRIPT_LINES
        if (lines := len(text.splitlines())) > allowed:
            found.append(f"{name}: {lines} lines, {allowed} allowed")
    return found


if __name__ == "__main__":
    found = complaints()
    print("\n".join(found) or "sizes: everything within its limits")
    sys.exit(bool(found))
