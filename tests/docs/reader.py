"""A reader who does what a page says: runs its Python and its commands, and compares what they print.

A page is read from top to bottom. Its Python blocks share one namespace and one event loop, as in `python -m
asyncio`. A `text` block is what the block before it prints; `...` stands for anything. Comments that a reader does not
see say the rest: `file: NAME` (the next block is that file), `background: NAME` (the next command goes on running),
`prints: NAME` (the next `text` block is what it prints meanwhile), `interrupt: NAME` (Ctrl-C), `types: TEXT` (what is
typed at the next command), `ends: CODE` (with which it ends), `shown: REASON` (the next block is only looked at),
`script: sh` (the next block is run whole by the shell; what it exports, later ones have). Port 8700 is a free one here.
"""

import ast
import asyncio
import contextlib
import doctest
import inspect
import io
import shlex
import signal
import socket
import subprocess
import sys
import types
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any, Final

from sybil import Document, Example, Region, Sybil
from sybil.parsers.markdown.lexers import DirectiveInHTMLCommentLexer, FencedCodeBlockLexer

from broker import AsyncBroker, Broker
from broker.testing import wait_until
from tests.docs import shell

DIRECTIVES: Final = ("file", "background", "prints", "interrupt", "types", "ends", "shown", "script")
SECONDS: Final = 60.0
PORT: Final = "8700"
"""Where pages have the gateway listen."""


def free_port() -> str:
    """A port that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return str(one.getsockname()[1])


def matches(expected: str, printed: str) -> bool:
    """Whether something printed is what a page shows."""
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    return doctest.OutputChecker().check_output(f"{expected.strip()}\n", f"{printed.strip()}\n", flags)


class Background:
    """A program of the page that goes on running, and what it has printed so far."""

    def __init__(self, command: list[str], cwd: Path, env: Mapping[str, str], out: Path) -> None:
        self._out = out
        with out.open("wb") as file:
            self._process = subprocess.Popen(command, cwd=cwd, env=env, stdout=file, stderr=subprocess.STDOUT)

    @property
    def printed(self) -> str:
        return self._out.read_text(encoding="utf-8")

    def interrupt(self) -> int:
        """Its exit code after Ctrl-C."""
        self._process.send_signal(signal.SIGINT)
        return self._process.wait(SECONDS)

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


class Reader:
    """Reads one page in a folder of its own."""

    def __init__(self, page: Path, folder: Path, env: Mapping[str, str]) -> None:
        self._folder = folder
        self._env = env
        self._notes: dict[str, str] = {}
        self._printed: str | None = None
        self._running: dict[str, Background] = {}
        self._port = free_port()
        self._loop = asyncio.Runner()
        self._document = Sybil([self._blocks, self._directives]).parse(page)

    def read(self) -> int:
        """How many blocks were run or looked at; raises what goes wrong in one, with its line."""
        count = 0
        with self._ending():
            for example in self._document.examples():
                example.evaluate()
                count += 1
        return count

    @contextlib.contextmanager
    def _ending(self) -> Generator[None]:
        """Whatever the page left open is closed."""
        try:
            yield
        finally:
            for program in self._running.values():
                program.close()
            self._loop.run(self._close_all())
            self._loop.close()

    async def _close_all(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        for value in list(self._document.namespace.values()):
            if isinstance(value, AsyncBroker):
                await value.aclose()
            elif isinstance(value, Broker):
                value.close()

    # Finding ---------------------------------------------------------------------------------------------------

    def _blocks(self, document: Document) -> Generator[Region]:
        for region in FencedCodeBlockLexer("python|sh|text|toml|json|mermaid")(document):
            region.parsed, region.evaluator = region.lexemes["source"], self._block
            yield region

    def _directives(self, document: Document) -> Generator[Region]:
        for region in DirectiveInHTMLCommentLexer("|".join(DIRECTIVES))(document):
            region.parsed, region.evaluator = region.lexemes["arguments"].strip(), self._directive
            yield region

    # Doing -----------------------------------------------------------------------------------------------------

    def _directive(self, example: Example) -> str | None:
        name, value = example.region.lexemes["directive"], example.parsed
        if name == "interrupt":
            code = self._running[value].interrupt()
            return f"{value} ended with {code}: {self._running[value].printed}" if code else None
        self._notes[name] = value
        return None

    def _block(self, example: Example) -> str | None:
        notes, self._notes = self._notes, {}
        language = example.region.lexemes["language"]
        source = (
            str(example.parsed)
            .replace(f":{PORT}", f":{self._port}")
            .replace(f"port {PORT}", f"port {self._port}")
        )
        if language == "text":
            return self._compare(source, notes)
        self._printed = None
        if "file" in notes:
            (self._folder / notes["file"]).write_text(source, encoding="utf-8")
        elif language == "python" and "shown" not in notes:
            self._python(example, source)
        elif language == "sh":
            return self._shell(source, notes)
        return None

    def _compare(self, expected: str, notes: dict[str, str]) -> str | None:
        if "prints" in notes:
            program = self._running[notes["prints"]]
            with contextlib.suppress(TimeoutError):
                wait_until(lambda: matches(f"...{expected.strip()}...", program.printed), SECONDS)
                return None
            return f"expected:\n{expected}\nprinted:\n{program.printed}"
        printed, self._printed = self._printed, None
        if printed is None or "shown" in notes or matches(expected, printed):
            return None
        return f"expected:\n{expected}\nprinted:\n{printed}"

    def _python(self, example: Example, source: str) -> None:
        padded = "\n" * (example.line + example.parsed.line_offset) + source
        code = compile(padded, example.path, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        block = types.FunctionType(code, example.namespace)

        async def run() -> None:
            result: Any = block()
            if inspect.iscoroutine(result):
                await result

        with contextlib.redirect_stdout(io.StringIO()) as out:
            self._loop.run(run())
        self._printed = out.getvalue()

    def _shell(self, source: str, notes: dict[str, str]) -> str | None:
        faults = shell.faults(source, self._folder)
        if faults or "shown" in notes:
            return "\n".join(faults) or None
        if "script" in notes:
            return self._script(source)
        printed = []
        for words in shell.commands(source):
            if not shell.can_run(words):
                continue
            command = shell.resolved(words)
            if "background" in notes:
                name = notes["background"]
                out = self._folder / f"{name}.out"
                self._running[name] = Background(command, self._folder, self._env, out)
                continue
            done = subprocess.run(
                command, cwd=self._folder, env=self._env, capture_output=True, text=True, timeout=SECONDS,
                input=notes.get("types", ""), check=False,
            )  # fmt: skip
            if done.returncode != int(notes.get("ends", "0")):
                return f"{words} ended with {done.returncode}: {done.stdout}{done.stderr}"
            printed.append(done.stdout)
        self._printed = "".join(printed) if printed else None
        return None

    def _script(self, source: str) -> str | None:
        variables = self._folder / ".variables"
        variables.touch()
        tools = shlex.quote(str(Path(sys.executable).parent))
        program = (
            f"set -eu\n. ./{variables.name}\nPATH={tools}:$PATH\n{source}\nexport -p > {variables.name}\n"
        )
        done = subprocess.run(
            ["sh", "-c", program], cwd=self._folder, env=self._env, capture_output=True, text=True, timeout=SECONDS,
            check=False,
        )  # fmt: skip
        self._printed = done.stdout
        return (
            f"{source} ended with {done.returncode}: {done.stdout}{done.stderr}" if done.returncode else None
        )
