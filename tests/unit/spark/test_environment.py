"""What Spark needs on a machine is asked for before it is started."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pytest

from kip848_client.cli import main
from kip848_client.errors import ConfigError
from kip848_client.spark._environment import check_environment


def _java(folder: Path, said: str) -> dict[str, str]:
    """An environment with a ``java`` that says this of its version."""
    java = folder / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho '{said}' >&2\n")
    java.chmod(0o755)
    return {"JAVA_HOME": str(folder)}


def test_a_java_that_is_new_enough_will_do(tmp_path: Path) -> None:
    check_environment(_java(tmp_path, 'openjdk version "21.0.2" 2024-01-16'))


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ('java version "1.8.0_402"', "has version 1: install Java 17"),
        ('openjdk version "11.0.22"', "has version 11: install Java 17"),
        ("no such thing", "does not report its version .*no such thing"),
    ],
)
def test_another_one_is_told(tmp_path: Path, said: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        check_environment(_java(tmp_path, said))


def test_no_java_is_told() -> None:
    with pytest.raises(
        ConfigError, match="Spark needs Java 17, but there is no java on the PATH: install"
    ):
        check_environment({"PATH": "/nowhere"})
    with pytest.raises(ConfigError, match="JAVA_HOME=/nowhere has no bin/java"):
        check_environment({"JAVA_HOME": "/nowhere"})


def test_a_java_that_cannot_be_run_is_told(tmp_path: Path) -> None:
    environment = _java(tmp_path, "")
    (tmp_path / "bin" / "java").chmod(0o644)
    with pytest.raises(ConfigError, match="cannot be run"):
        check_environment(environment)


@pytest.mark.parametrize(("version", "told"), [("3.5.1", "3.5.1 is inst"), ("5.0.0", "below 5")])
def test_a_spark_of_another_time_is_told(
    monkeypatch: pytest.MonkeyPatch, version: str, told: str
) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda _name: version)
    with pytest.raises(ConfigError, match=told):
        check_environment({})


def test_a_spark_that_is_missing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    with pytest.raises(ConfigError, match=r"needs pyspark.*pip install '\.\[spark\]'"):
        check_environment({})


@pytest.mark.parametrize("action", [["demo"], ["run", "pipeline.toml"]])
def test_the_command_says_so(
    action: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert main(["pipeline", *action]) == 2
    told = capsys.readouterr().err
    assert told.startswith("kip848 pipeline: Spark needs Java 17, but there is no java")
