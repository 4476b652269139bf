"""Every example runs as it stands and prints what its docstring says."""

from __future__ import annotations

import ast
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.support.real_kafka import RealKafka

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("[0-9]*.py"))
LINES_MAX = 80
PROMISE = "Prints::\n"


QUICK = {"01_consume", "04_typed_values", "08_produce", "10_exactly_once"}
_MORE = pytest.mark.everything("each starts Python, and what it shows has tests of its own")


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=[] if path.stem in QUICK else [_MORE])
        for path in EXAMPLES
    ],
)
def test_an_example_prints_what_it_promises(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) < LINES_MAX
    check(path)


@pytest.mark.real_kafka
def test_the_example_of_workers_runs_on_kafka(real_kafka: RealKafka) -> None:
    (path,) = (each for each in EXAMPLES if each.stem == "14_workers")
    check(path, "--bootstrap", real_kafka.bootstrap)


def check(path: Path, *options: str) -> None:
    text = path.read_text(encoding="utf-8")
    told = ast.get_docstring(ast.parse(text), clean=True) or ""
    assert PROMISE in told, "an example says what it prints"
    expected = textwrap.dedent(told.split(PROMISE, 1)[1]).strip()
    done = subprocess.run(
        [sys.executable, "-W", "error", str(path), *options],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == expected


def test_there_are_examples_without_gaps_in_their_numbers() -> None:
    numbers = [int(path.stem[:2]) for path in EXAMPLES]
    assert numbers == list(range(1, len(EXAMPLES) + 1))
    assert len(numbers) >= 7
