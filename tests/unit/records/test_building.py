"""What a user installs: from an archive of the sources, with a compiler and without one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

pytestmark = pytest.mark.everything("it builds the package three times")


def built(kind: str, source: Path, folder: Path, **environment: str) -> Path:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)],
        cwd=source,
        env={**os.environ, **environment},
        check=True,
        capture_output=True,
    )
    (archive,) = folder.iterdir()
    return archive


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked archive: whatever is not in it cannot be built from."""
    archive = built("sdist", ROOT, tmp_path_factory.mktemp("archive"))
    folder = tmp_path_factory.mktemp("sources")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    (unpacked,) = folder.iterdir()
    return unpacked


def says_compiled(wheel: Path, folder: Path) -> bool:
    """What the package says of itself, with nothing but the wheel's files before the rest."""
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(folder)
    code = "import kip848_client.records as r; print(r.COMPILED, r.__file__)"
    found = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    said, path = found.stdout.split()
    assert Path(path).is_relative_to(folder)
    return said == "True"


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no compiler")
def test_with_a_compiler_the_wheel_has_the_extension(sources: Path, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    wheel = built("wheel", sources, tmp_path / "wheel", TMPDIR=str(temporary))
    assert not wheel.name.endswith("-none-any.whl")
    assert says_compiled(wheel, tmp_path / "installed")
    assert list(temporary.iterdir()) == []


def test_without_one_the_wheel_serves_all_the_same(sources: Path, tmp_path: Path) -> None:
    wheel = built("wheel", sources, tmp_path / "wheel", CC=str(tmp_path / "no-compiler"))
    assert wheel.name.endswith("-none-any.whl")
    assert not says_compiled(wheel, tmp_path / "installed")


@pytest.mark.parametrize("without", [{"KIP848_NO_EXTENSIONS": "1"}, {"CC": "/no/compiler"}])
def test_an_extension_of_an_earlier_build_does_not_outlive_one_without(
    sources: Path, tmp_path: Path, without: dict[str, str]
) -> None:
    """In place: nothing else would take it away."""
    old = sources / "src/kip848_client/records/_scan.cpython-311-of-former-times.so"
    old.write_bytes(b"")
    built("wheel:editable", sources, tmp_path / "wheel", **without)
    assert not old.exists()
