"""A broker writes the archive of its release once; the next ones use it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import class_archive
from tests.support.class_archive import ClassArchive


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A broker's folder; jars lie in the folder beside it."""
    monkeypatch.setattr(class_archive, "_java_build", lambda: "build")
    (tmp_path / "kafka" / "libs").mkdir(parents=True)
    (tmp_path / "broker").mkdir()
    return tmp_path / "broker"


def archive(folder: Path) -> ClassArchive:
    return ClassArchive(folder.parent / "kafka" / "libs", folder)


def test_what_the_first_broker_wrote_is_used_by_the_next(folder: Path) -> None:
    first = archive(folder)
    assert first.is_missing
    *_, option = first.options()
    name, _, path = option.partition("=")
    assert name == "-XX:ArchiveClassesAtExit"
    Path(path).write_text("classes")
    first.keep()
    assert list(folder.iterdir()) == []
    then = archive(folder)
    assert not then.is_missing
    *_, option = then.options()
    name, _, path = option.partition("=")
    assert name == "-XX:SharedArchiveFile"
    assert Path(path).read_text() == "classes"


def test_a_broker_that_was_killed_wrote_nothing(folder: Path) -> None:
    archive(folder).keep()
    assert archive(folder).is_missing


def test_a_cache_that_takes_nothing_harms_nobody(folder: Path) -> None:
    unkept = archive(folder)
    (folder / "classes.jsa").write_text("classes")
    (folder.parent / "kafka" / "libs").rmdir()
    (folder.parent / "kafka").rmdir()
    unkept.keep()
    assert archive(folder).is_missing
