"""What the build makes of the C extensions, and of a folder without sources of one."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

BUILD: Any = import_module("hatch_build")  # no annotations of setuptools are installed
EXTENSIONS: dict[str, str] = BUILD.EXTENSIONS
SOURCES: Path = BUILD.SOURCES
ROOT = Path(__file__).resolve().parents[2]


def built(root: Path) -> dict[str, Any]:
    """What the hook adds to a wheel of these sources."""
    data: dict[str, Any] = {"force_include": {}}
    hook = BUILD.ExtensionHook(str(root), {}, None, None, str(root / "dist"), "wheel")
    hook.initialize("standard", data)
    return data


@pytest.mark.parametrize("package", EXTENSIONS)
def test_an_extension_has_sources(package: str) -> None:
    assert list((ROOT / SOURCES / package / "_extension").glob("*.c"))


@pytest.mark.parametrize("missing", EXTENSIONS)
def test_a_folder_without_a_c_file_ends_the_build(
    missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even a build without extensions: its archive would be one without sources."""
    monkeypatch.setenv("KIP848_NO_EXTENSIONS", "1")
    for package in EXTENSIONS:
        folder = tmp_path / SOURCES / package / "_extension"
        folder.mkdir(parents=True)
        (folder / "part.h").touch()
        if package != missing:
            (folder / "part.c").touch()
    with pytest.raises(FileNotFoundError, match=f"{missing}/_extension"):
        built(tmp_path)


def test_without_a_compiler_the_build_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CC", str(tmp_path / "no-compiler"))
    monkeypatch.delenv("KIP848_NO_EXTENSIONS", raising=False)
    assert built(ROOT) == {"force_include": {}}
    said = capsys.readouterr().err
    assert all(f"no {name}, the package works without it" in said for name in EXTENSIONS.values())
