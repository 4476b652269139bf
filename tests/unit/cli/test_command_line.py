"""``kip848``: subcommands are found, loaded when used, and fail with the right code."""

from __future__ import annotations

import importlib
import os
import runpy
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import kip848_client
from kip848_client import records
from kip848_client.cli import COMMANDS, groups, main
from kip848_client.core.produce import _partitioner


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_keeps_its_side_of_the_deal(name: str) -> None:
    module = importlib.import_module(f"kip848_client.cli.{name}")
    assert callable(module.configure)
    assert callable(module.run)


@pytest.mark.parametrize("arguments", [[], ["nope"], ["mock", "--nope"]])
def test_a_wrong_command_line_ends_with_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exiting:
        main(arguments)
    exit_status = exiting.value.code
    assert exit_status == 2
    assert "usage: kip848" in capsys.readouterr().err


def test_help_lists_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exiting:
        main(["--help"])
    assert exiting.value.code == 0
    said = capsys.readouterr().out
    assert all(name in said for name in COMMANDS)


def test_a_wrong_setting_ends_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mock", "--config", "num.partition=1"]) == 2
    assert "did you mean num.partitions" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["demo", "--bootstrap", ""], "needs at least one host[:port]"),
        (["demo", "--bootstrap", "a:b:c"], "'a:b:c' is not host[:port]"),
        (["demo", "--bootstrap", "127.0.0.1:99999"], "a port is a number from 1 to 65535"),
        (["groups", "list", "--bootstrap-server", "127.0.0.1:99999"], "a port is a number"),
        (["topics", "list", "--bootstrap-server", "a:b:c"], "'a:b:c' is not host[:port]"),
        (["simulate", "--seed", "5..1"], "say 7 or 0..199"),
    ],
)
def test_a_wrong_value_ends_with_2(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"kip848 {arguments[0]}: ")
    assert says in error


def ended(*words: str, stdout: int | None = None, shell: str = "", **env: str) -> tuple[int, str]:
    """The exit code, and what it said of errors, of ``kip848`` in a process of its own."""
    command = [sys.executable, "-m", "kip848_client", *words]
    if shell:
        command = ["sh", "-c", f"exec {shlex.join(command)} {shell}"]
    done = subprocess.run(
        command,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=60,
        env=os.environ | env,
    )
    return done.returncode, done.stderr


def test_an_output_that_nobody_reads_is_no_error_to_shout_about() -> None:
    reads, writes = os.pipe()
    os.close(reads)
    try:
        assert ended("groups", "--validate-regex", "a[", stdout=writes) == (1, "")
    finally:
        os.close(writes)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has /dev/full")
def test_an_output_that_is_full_is_told_in_one_line() -> None:
    status, said = ended("groups", "--validate-regex", "a", shell=">/dev/full")
    assert status == 1
    assert "the standard output cannot be written to" in said
    assert len(said.splitlines()) == 1


@pytest.mark.skipif(os.name == "nt", reason="it is said to a shell of Unix")
def test_an_output_that_is_closed_loses_what_is_printed() -> None:
    assert ended("groups", "--validate-regex", "a", shell=">&-") == (0, "")
    assert ended("groups", "--nope", shell=">&- 2>&-") == (2, "")


def test_what_a_terminal_cannot_show_is_escaped(tmp_path: Path) -> None:
    file = tmp_path / "shown"
    words = ("groups", "--validate-regex", "группа")
    with file.open("wb") as shown:
        assert ended(*words, stdout=shown.fileno(), PYTHONIOENCODING="latin-1") == (0, "")
    assert file.read_bytes().isascii()
    assert rb"\u0433" in file.read_bytes()


def test_the_version_says_what_is_compiled(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(records, "COMPILED", True)
    monkeypatch.setattr(_partitioner, "HASHES", {False: hash, True: hash})
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == (
        f"kip848-client {kip848_client.__version__}\ncompiled extensions: records, key hash\n"
    )
    monkeypatch.setattr(records, "COMPILED", False)
    monkeypatch.setattr(_partitioner, "HASHES", {False: hash})
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "compiled extensions: none",
        "missing: records, key hash; everything works without them, but slower",
    ]


def test_the_version_is_a_constant_that_the_build_reads() -> None:
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["dynamic"] == ["version"]
    module = runpy.run_path(project["tool"]["hatch"]["version"]["path"])
    assert kip848_client.__version__ == module["__version__"]


def test_an_interrupt_before_a_command_begins_ends_with_130(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted(parser: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(groups, "configure", interrupted)
    assert main(["groups", "list"]) == 130


@pytest.mark.parametrize("wrong", [["--interval", "nan"], ["--interval", "inf"], ["--count", "0"]])
def test_a_watch_that_would_never_look_again_is_refused(
    wrong: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["groups", "watch", "--bootstrap-server", "127.0.0.1:1", "g", *wrong]) == 2
    assert f"{wrong[0]} {wrong[1]}" in capsys.readouterr().err
