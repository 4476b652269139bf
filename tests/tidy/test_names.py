"""A dotted name or a path of ours, wherever it is written, leads to something: in code and its
strings and comments, tests, pages, C, SQL and TOML."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from pathlib import Path, PurePosixPath

import pytest

from tests.tidy.names import TOPS, resolves
from tests.tidy.source_tree import ROOT

DOTTED = re.compile(rf"(?<![\w./-])(?:{'|'.join(TOPS)})(?:\.[A-Za-z_]\w*)+")
PATH = re.compile(
    r"(?<![\w./-])(?:src|kip848_client|mock_coordinator|tests|benchmarks|examples|tools|\.ci)"
    r"(?:/[\w.-]+)*/[\w.-]*\w"
)
FILE = re.compile(r"(?<![\w./*{}<>-])(?:\.\./)*((?:[\w-]+/)*\w+\.py)\b")
"""A file of Python, in backquotes or plain, with or without its folders; a link of a page, too."""
PRIVATE = re.compile(r"(?<!`)`{1,2}(_[a-z]\w*)`{1,2}(?!`)")
QUOTED = re.compile(r"`+[^`\n]+`+")
DESCRIBES = ("src/", "mock_coordinator/", "docs/", "ARCHITECTURE.md", "README.md")
"""Files whose text names files without their folders."""
READ = (".c", ".h", ".java", ".jsonl", ".md", ".py", ".pyi", ".sql", ".toml", ".txt", ".yml")
NO_NAMES = {
    "kip848_client.zip",  # the archive that Spark's executors get
    "kip848_client.java",  # an error handler of codecs
    "benchmarks.bench_",  # what the names of its files begin with
    "kip848_client.history.report._",
    "kip848_client.core.wire.error_codes",  # CHANGELOG.md: the name before
    # examples of what a reader might add or name
    "mock_coordinator/core/profiles/kafka_4_5.py",
    "tests/x.py",
    "tests/unit/x.py",
    "src/kip848_client/records/_scan.cpython-311-of-former-times.so",
}
"""What only looks like a name or a path."""
NO_FILES = {
    # what a reader writes
    "kafka_4_5.py",
    "run_pipeline.py",
    "NAME.py",
    # tests of aiokafka
    "test_consumer.py",
    "test_pep492.py",
    "test_transactional_consumer.py",
    "test_transactional_producer.py",
}
NO_PRIVATE_NAMES = {
    "_get_parsed_schema",  # of confluent-kafka
    "_spark_metadata",  # a folder that Spark writes
    "_staging",  # a folder that was considered
    "_total",  # a suffix of Prometheus
}
MOVED = ROOT / "tools" / "moved.txt"


@cache
def _tracked() -> tuple[str, ...]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip(f"only git knows which files belong to the project: {listed.stderr}")
    return tuple(name for name in listed.stdout.split("\0") if (ROOT / name).is_file())


def _texts() -> Iterator[tuple[str, str]]:
    here = Path(__file__).relative_to(ROOT).as_posix()
    for name in _tracked():
        if (name.endswith(READ) or name == ".ci/run") and name not in (here, "tools/moved.txt"):
            yield name, (ROOT / name).read_text(encoding="utf-8")


def _moved() -> list[tuple[str, str]]:
    lines = MOVED.read_text(encoding="utf-8").splitlines()
    told = [line.split() for line in lines if line.strip() and not line.startswith("#")]
    wrong = [" ".join(words) for words in told if len(words) != 2]
    assert not wrong, f"tools/moved.txt: not `old new`: {wrong}"
    return [(words[0], words[1]) for words in told]


def _lost_names(texts: Iterable[tuple[str, str]], moved: Collection[str] = ()) -> list[str]:
    """The changelog may tell of what has moved."""
    return [
        f"{name}:{number}: there is no {found[0]}"
        for name, text in texts
        for number, line in enumerate(text.splitlines(), 1)
        for found in DOTTED.finditer(line)
        if found[0] not in NO_NAMES
        and not resolves(found[0])
        and not (name == "CHANGELOG.md" and found[0] in moved)
    ]


def _lost_paths(texts: Iterable[tuple[str, str]]) -> list[str]:
    return [
        f"{name}:{number}: there is no {found[0]}"
        for name, text in texts
        for number, line in enumerate(text.splitlines(), 1)
        for found in PATH.finditer(line)
        if found[0] not in NO_NAMES
        and not (ROOT / found[0]).exists()
        and not (ROOT / "src" / found[0]).exists()
    ]


def _lost_files(texts: Iterable[tuple[str, str]], tracked: Iterable[str]) -> list[str]:
    """A file may be named with any of its folders, or without."""
    parts = [PurePosixPath(name).parts for name in tracked]
    known = {"/".join(each[start:]) for each in parts for start in range(len(each))}
    return [
        f"{name}:{number}: there is no {found[1]}"
        for name, text in texts
        for number, line in enumerate(text.splitlines(), 1)
        for found in FILE.finditer(line)
        if found[1] not in known and PurePosixPath(found[1]).name not in NO_FILES
    ]


def _lost_private_names(
    texts: Iterable[tuple[str, str]], tracked: Iterable[str], code: Iterable[str]
) -> list[str]:
    """One leads to a file or a folder, or code has it outside backquotes."""
    known = {part.removesuffix(".py") for name in tracked for part in PurePosixPath(name).parts}
    known |= NO_PRIVATE_NAMES
    for text in code:
        known.update(re.findall(r"\b_\w+", QUOTED.sub("", text)))
    return [
        f"{name}:{number}: there is no {found[1]}"
        for name, text in texts
        for number, line in enumerate(text.splitlines(), 1)
        for found in PRIVATE.finditer(line)
        if found[1] not in known
    ]


def _leftover(folders: Iterable[str], tracked: Collection[str]) -> list[str]:
    """Those in which no file of the project is, at any depth. A folder of C or SQL has some."""
    with_files = {str(parent) for name in tracked for parent in PurePosixPath(name).parents}
    return sorted(folder for folder in folders if folder not in with_files)


def test_a_dotted_name_leads_to_something() -> None:
    lost = _lost_names(_texts(), {old for old, _ in _moved()})
    assert not lost, "\n".join(lost)


def test_a_path_leads_to_something() -> None:
    assert not (lost := _lost_paths(_texts())), "\n".join(lost)


def test_a_file_that_is_named_without_its_folder_exists() -> None:
    texts = [(name, text) for name, text in _texts() if name.startswith(DESCRIBES)]
    assert not (lost := _lost_files(texts, _tracked())), "\n".join(lost)


def test_a_private_name_in_backquotes_exists() -> None:
    texts = [(name, text) for name, text in _texts() if name.startswith(DESCRIBES)]
    code = (text for name, text in _texts() if name.endswith((".py", ".pyi", ".c", ".h")))
    assert not (lost := _lost_private_names(texts, _tracked(), code)), "\n".join(lost)


@pytest.mark.parametrize(
    "text", ["`_old.py` has it", "see _old.py.", "``a/_old.py``", "[x](../../src/a/_old.py)"]
)
def test_a_file_that_does_not_exist_is_lost(text: str) -> None:
    assert _lost_files([("page.md", text)], ["src/a/_new.py", "src/b/_old.pyi"])
    assert not _lost_files([("page.md", text)], ["src/a/_old.py"])


def test_a_private_name_that_does_not_exist_is_lost() -> None:
    text = [("a.py", "``_old`` decides; ``_new`` does, and `_called`.")]
    lost = _lost_private_names(text, ["src/_new.py"], ["def _called(): ...  # like ``_old``"])
    assert lost == ["a.py:1: there is no _old"]


@pytest.mark.parametrize(
    "name",
    [
        "kip848_client.gone",
        "kip848_client.errors.Gone",
        "kip848_client.errors.ConfigErro",
        "kip848_client.records._scan.Gone",
        "kip848_client.config._consumer.gone.more",
        "mock_coordinator.core.gone",
        "tests.gone",
    ],
)
def test_a_name_that_is_not_there_is_lost(name: str) -> None:
    assert _lost_names([("page.md", f"see `{name}`, or :mod:`{name}`")])


@pytest.mark.parametrize(
    "name",
    [
        "kip848_client.errors.ConfigError.args",
        "kip848_client.Consumer",
        "kip848_client.records._scan.Batch",
        "pyspark_kip848.DefaultSource",
        "mock_coordinator.pytest_plugin.mock_broker",
        "tests.tidy.names.resolves",
    ],
)
def test_a_name_that_is_there_is_found(name: str) -> None:
    assert resolves(name)


def test_a_path_that_is_not_there_is_lost() -> None:
    assert _lost_paths([("page.md", "see src/kip848_client/gone.py, or tests/gone")])
    assert _lost_paths([("build.py", 'X = {"kip848_client/gone": 1}')])
    assert not _lost_paths([("build.py", 'X = {"kip848_client/records": 1}')])


def test_what_a_tool_is_told_of_files_matches_some() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    globs = [
        *project["ruff"]["lint"]["per-file-ignores"],
        *project["hatch"]["build"]["targets"]["wheel"]["packages"],
        project["hatch"]["version"]["path"],
        *project["mypy"]["files"],
        *project["pyright"]["include"],
    ]
    unused = [glob for glob in globs if not any(ROOT.glob(glob))]
    assert not unused, f"pyproject.toml: these match no file: {unused}"


def test_no_folder_of_a_package_is_left_over() -> None:
    """Python imports one without any module all the same, as a namespace package."""
    tracked = _tracked()
    folders = [
        path.relative_to(ROOT).as_posix()
        for top in ("src", "mock_coordinator")
        for path in (ROOT / top).rglob("*")
        if path.is_dir() and "__pycache__" not in path.parts
    ]
    left = _leftover(folders, tracked)
    assert not left, f"no file of these belongs to the project; rm -r {' '.join(left)}"


def test_a_folder_with_compiled_files_alone_is_left_over() -> None:
    tracked = ["src/a/b/c.py", "src/a/d/e.sql"]
    assert _leftover(["src", "src/a", "src/a/b", "src/a/d", "src/a/f"], tracked) == ["src/a/f"]


def test_a_move_leads_to_something() -> None:
    moved = _moved()
    lost = [f"{old} {new}" for old, new in moved if not resolves(new)]
    assert not lost, f"tools/moved.txt: the new names are not there: {lost}"
    assert len({old for old, _ in moved}) == len(moved), "tools/moved.txt: one is there twice"
