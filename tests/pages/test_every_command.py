"""Each command that any page names is one: its program, its options, what it installs. Those of
the how-to pages that ask brokers are run, too (``test_commands``), the others where they are
tested."""

from __future__ import annotations

import importlib.util
import re
import shlex
import tomllib
from pathlib import Path
from typing import Final

import pytest

from benchmarks.__main__ import BENCHMARKS
from kip848_client.cli import COMMANDS, main, parser_for
from kip848_client.core.extras import installation

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = (
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md")),
    ROOT / "tests" / "scenarios" / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
)
_SPAN: Final = re.compile(r"`((?:kip848|python3? -m|pip install) [^`]+)`")
_LINE: Final = re.compile(r"^(?: {4})?((?:kip848|python3? -m|pip install) .+)$", re.MULTILINE)
_COMMENT: Final = re.compile(r"\s+#\s.*| > .*")
_EXTRAS: Final = re.compile(r"(?:\.|kip848-client)\[([a-z,-]+)\]")


def commands_of(text: str) -> list[str]:
    """The commands on a page, in sentences and in blocks."""
    spans = [" ".join(each.split()) for each in _SPAN.findall(text)]
    lines = [_COMMENT.sub("", each) for each in _LINE.findall(text)]
    return [one.strip() for each in (*spans, *lines) for one in each.split("&&")]


COMMANDS_OF_PAGES: Final = sorted(
    {each for page in PAGES for each in commands_of(page.read_text(encoding="utf-8"))}
)


def of(program: str) -> list[str]:
    """The commands of one program."""
    return [each for each in COMMANDS_OF_PAGES if each.split()[0] == program]


def words_of(command: str) -> list[str]:
    """As a reader would fill it in: the first of what there is to choose from."""
    plain = command.replace("[", "").replace("]", "") if " [" in command else command
    return [each.split("|")[0] if "'" not in command else each for each in shlex.split(plain)]


def test_there_are_commands() -> None:
    assert len(COMMANDS_OF_PAGES) > 60
    assert {each.split()[0] for each in COMMANDS_OF_PAGES} >= {"kip848", "python", "pip"}


@pytest.mark.parametrize("command", of("kip848"))
def test_kip848_takes_it(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, name, *rest = words = words_of(command)
    if name == "--version":
        assert main([name]) == 0
        assert capsys.readouterr().out.startswith("kip848-client ")
        return
    assert name in COMMANDS
    if len(rest) < 2:  # "kip848 mock --config": the name of it
        with pytest.raises(SystemExit):
            parser_for([name]).parse_args([name, "--help"])
        assert all(each in capsys.readouterr().out for each in rest)
        return
    if name in ("groups", "topics") and not {"--bootstrap-server", "--validate-regex"} & {*rest}:
        words += ["--bootstrap-server", "localhost:9092"]
    assert parser_for(words[1:]).parse_args(words[1:]).command == name


@pytest.mark.parametrize("command", of("python"))
def test_python_has_it(command: str) -> None:
    module, *rest = words_of(command)[2:]
    found = importlib.util.find_spec(module)
    assert found is not None
    folders = [Path(each) for each in found.submodule_search_locations or ()]
    if folders:
        found = importlib.util.find_spec(f"{module}.__main__")
        assert found is not None
    if module == "benchmarks":
        assert rest[0] in BENCHMARKS
        return
    files = [each for folder in folders for each in folder.glob("*.py")]
    files += [Path(found.origin)] if found.origin and not folders else []
    source = "".join(each.read_text(encoding="utf-8") for each in files)
    for option in (each for each in rest if each.startswith("--")):
        assert f'"{option}"' in source


def test_errors_and_pages_install_extras_in_the_same_way() -> None:
    """From a clone, until the package is published."""
    command, _, where = installation("report").partition(" in ")
    assert command in of("pip")
    assert where == "a clone of kip848-client"
    published = re.compile(r"install [^`\n]*(?<!/)kip848-client\[")
    texts = [*PAGES, *(ROOT / "src").rglob("*.py"), *(ROOT / "examples").rglob("*.py")]
    assert not [str(each) for each in texts if published.search(each.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("command", of("pip"))
def test_pip_finds_the_extras(command: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for extras in _EXTRAS.findall(command):
        assert set(extras.split(",")) <= set(project["optional-dependencies"])
