"""What the quick suite leaves out, and what it says about it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

SUITE = """
import pytest

def test_plain(): pass

@pytest.mark.everything("takes long")
def test_long(): pass

@pytest.mark.real_kafka
def test_on_kafka(): pass

@pytest.mark.smoke
@pytest.mark.real_kafka
def test_smoke(): pass

@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.everything("more"))])
def test_seeds(seed): pass
"""


def run(folder: Path, *arguments: str, suite: str = SUITE) -> str:
    (folder / "test_it.py").write_text(suite, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "tests.support.pytest_everything"]
    finished = subprocess.run(
        [*command, "-W", "ignore", "-p", "no:cacheprovider", "-c", "/dev/null", *arguments],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},  # starts sooner
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    return finished.stdout + finished.stderr


_WITH_WORKERS = pytest.mark.everything("it starts pytest three times")


@pytest.mark.parametrize(
    "workers",
    [
        pytest.param((), id="alone"),
        pytest.param(("-p", "xdist.plugin", "-n", "2"), id="workers", marks=_WITH_WORKERS),
    ],
)
def test_the_quick_suite_says_what_it_left_out(tmp_path: Path, workers: tuple[str, ...]) -> None:
    said = run(tmp_path, *workers, "test_it.py").splitlines()
    assert "3 passed, 3 deselected" in said[-1], said
    assert said[-2] == (
        "3 tests were deselected: this was the quick suite. `pytest --everything` runs every one."
    )


def test_everything_leaves_nothing_out(tmp_path: Path) -> None:
    said = run(tmp_path, "--everything", "test_it.py")
    assert "6 passed" in said, said
    assert "deselected" not in said


def test_a_test_that_is_named_is_run(tmp_path: Path) -> None:
    assert "1 passed" in run(tmp_path, "test_it.py::test_long")


def test_a_mark_without_a_reason_is_refused(tmp_path: Path) -> None:
    bare = "import pytest\n\n@pytest.mark.everything\ndef test_it(): pass\n"
    assert "everything needs a reason" in run(tmp_path, suite=bare)
