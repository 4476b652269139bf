"""Builds the C extensions, where there is a compiler. Without one the package works all the same:
``kip848_client.records`` says which way it reads records.

``KIP848_NO_EXTENSIONS=1 pip install .`` leaves them out.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCES = Path("src")
EXTENSIONS = {"kip848_client/records": "_scan", "kip848_client/core/produce": "_murmur2"}
"""By package: the module that is made of the C files in its folder ``_extension``."""


class ExtensionHook(BuildHookInterface[Any]):
    """Called by hatchling for each wheel, an editable one included."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add what was compiled to the wheel, which then is for this platform only."""
        sources = Path(self.root) / SOURCES
        for package, name in EXTENSIONS.items():
            library = self._library(sources / package / "_extension", name)
            if version == "editable":
                _put(library, sources / package, name)
            elif library is not None:
                build_data["force_include"][str(library)] = f"{package}/{library.name}"
                build_data["pure_python"] = False
                build_data["infer_tag"] = True

    def _library(self, sources: Path, name: str) -> Path | None:
        # a missing compiler is fine, a missing source is not: the folder has moved, or an archive
        # of the sources left it out, and every later wheel would be a slow one
        if not any(sources.glob("*.c")):
            raise FileNotFoundError(
                f"hatch_build.py: no C file in {sources}, so {name} cannot be built. EXTENSIONS "
                "names the package of each extension; its C files belong in the folder _extension "
                "of that package"
            )
        if os.environ.get("KIP848_NO_EXTENSIONS"):
            return None
        try:
            return _compiled(sources, name)
        except Exception as err:  # noqa: BLE001 - whatever a missing compiler or header leads to
            sys.stderr.write(f"kip848-client: no {name}, the package works without it: {err}\n")
            return None


def _put(library: Path | None, folder: Path, name: str) -> None:
    """In one step: a process may be running the one that is there. What an earlier build has left
    goes: it may be of other sources."""
    if library is not None:
        whole = folder / f"{library.name}.new"
        shutil.copy(library, whole)
        whole.replace(folder / library.name)
    for each in (*folder.glob(f"{name}.*.so"), *folder.glob(f"{name}.*.pyd")):
        if library is None or each.name != library.name:
            each.unlink()


def _compiled(sources: Path, name: str) -> Path:
    from setuptools import Distribution, Extension
    from setuptools.command.build_ext import build_ext

    folder = Path(tempfile.mkdtemp(prefix="kip848-client-"))
    # the wheel is written after this returns, so the library has to stay until the build ends
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    files = [str(path) for path in sorted(sources.glob("*.c"))]
    extension = Extension(name, files)
    command = build_ext(Distribution({"ext_modules": [extension]}))
    command.ensure_finalized()
    command.build_lib, command.build_temp = str(folder), str(folder / "objects")
    command.run()
    return Path(command.get_ext_fullpath(name))
