"""Where compiled modules go."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

SUITE = """
import subprocess, sys

def test_a_program():
    subprocess.run([sys.executable, "-c", "import helper"], check=True)
"""


def run(folder: Path, **environment: str) -> list[str]:
    """The compiled modules that a run leaves, by the beginning of their names, and where."""
    (folder / "test_it.py").write_text(SUITE, encoding="utf-8")
    (folder / "helper.py").write_text("", encoding="utf-8")
    arguments = ["-p", "tests.support.pytest_bytecode", "-W", "ignore"]
    finished = subprocess.run(
        [sys.executable, "-m", "pytest", "-c", os.devnull, "--rootdir", str(folder), *arguments],
        cwd=folder,
        env={
            "PYTHONPATH": f"{ROOT}:{folder}",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # starts sooner
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    ours = [each for each in folder.rglob("*.pyc") if each.name.startswith(("test_it.", "helper."))]
    return sorted(f"{_place(each, folder)}: {each.name.partition('.')[0]}" for each in ours)


def _place(module: Path, folder: Path) -> str:
    inside = module.relative_to(folder).parts
    return "the cache" if inside[0] == ".pytest_cache" else str(Path(*inside[:-1]))


def test_they_are_kept_elsewhere_if_not_beside_the_sources(tmp_path: Path) -> None:
    assert run(tmp_path, PYTHONDONTWRITEBYTECODE="1") == ["the cache: helper", "the cache: test_it"]


def test_they_are_left_to_python_where_it_writes_them(tmp_path: Path) -> None:
    assert run(tmp_path) == ["__pycache__: helper", "__pycache__: test_it"]
