from pathlib import Path

from tests.tools import sizes


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_nothing_has_outgrown_the_house() -> None:
    assert sizes.complaints() == []


def test_long_files_are_noticed_wherever_they_are(tmp_path: Path) -> None:
    write(tmp_path, "broker/long.py", "x = 1\n" * 401)
    write(tmp_path, "broker/right.py", "x = 1\n" * 400)
    write(tmp_path, "tests/unit/test_long.py", "x = 1\n" * 401)
    write(tmp_path, "broker/store/lua/long.lua", "x = 1\n" * 121)
    write(tmp_path, "broker/store/lua/_prelude.lua", "x = 1\n" * 400)
    assert [line.partition(":")[0] for line in sizes.complaints(tmp_path)] == [
        "broker/long.py",
        "tests/unit/test_long.py",
        "broker/store/lua/long.lua",
    ]


def test_the_generated_twin_is_not_counted_but_what_is_written_by_hand_beside_it_is(tmp_path: Path) -> None:
    write(tmp_path, "broker/_sync/client.py", "x = 1\n" * 500)
    write(tmp_path, "broker/_sync/_runtime.py", "x = 1\n" * 500)
    assert sizes.complaints(tmp_path) == ["broker/_sync/_runtime.py: 500 lines, 400 allowed"]


def test_long_functions_are_noticed_and_their_docstrings_forgiven(tmp_path: Path) -> None:
    docstring = '    """Told\n' + "    at length\n" * 30 + '    """\n'
    write(tmp_path, "broker/a.py", "def short():\n" + docstring + "    pass\n" * 39)
    write(tmp_path, "broker/b.py", "class C:\n  async def long(self):\n" + "    pass\n" * 40)
    assert sizes.complaints(tmp_path) == ["broker/b.py:2: long has 41 lines, 40 allowed"]


def test_classes_with_too_many_public_methods_are_noticed(tmp_path: Path) -> None:
    methods = "".join(f"    def verb{n}(self): ...\n" for n in range(15))
    rest = "    def _hidden(self): ...\n    @property\n    def noun(self): ...\n"
    write(tmp_path, "broker/a.py", "class Right:\n" + methods + rest)
    write(tmp_path, "broker/b.py", "class Crowded:\n" + methods + "    def one_more(self): ...\n")
    assert sizes.complaints(tmp_path) == ["broker/b.py:1: Crowded has 16 public methods, 15 allowed"]
