"""The classes of a program, loaded and checked once for all its starts: each takes half as long.

A JVM can write what it has loaded into an archive when it ends, and another one maps that into its
memory (class data sharing, JEP 350). The first broker of a release that ends in good order leaves
one beside the jars, and so does the first of Kafka's tools. A JVM that finds that an archive does
not fit its jars does without.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from tests.support.kafka_jars import find_java

__all__ = ["ClassArchive"]

_DIGITS: Final = 12
_WARNINGS: Final = ("-Xlog:disable", "-Xlog:all=warning:stderr")
"""What is said of classes that cannot be kept does not belong to a program's output."""


@functools.cache
def _java_build() -> str:
    """What tells one Java from another: an archive serves the one that wrote it."""
    shown = subprocess.run([find_java(), "-version"], capture_output=True, check=False)
    return hashlib.sha256(shown.stderr).hexdigest()[:_DIGITS]


class ClassArchive:
    """The archive for the jars in ``libs``, as one process sees it that may write to ``folder``."""

    def __init__(self, libs: Path, folder: Path) -> None:
        self._kept = libs.parent / f"classes-{_java_build()}.jsa"
        self._written = folder / "classes.jsa"
        self.is_missing = not self._kept.exists()
        """Then this process should end in good order, once."""

    def options(self) -> list[str]:
        """What to tell the JVM."""
        kind, path = (
            ("ArchiveClassesAtExit", self._written)
            if self.is_missing
            else ("SharedArchiveFile", self._kept)
        )
        return [*_WARNINGS, f"-XX:{kind}={path}"]

    def keep(self) -> None:
        """Keep what the process wrote when it ended. Others may do the same at this moment."""
        if not self._written.exists():
            return
        with contextlib.suppress(OSError):  # no room, or not our folder: the next one tries again
            number, name = tempfile.mkstemp(dir=self._kept.parent, suffix=".jsa")
            os.close(number)
            shutil.copyfile(self._written, name)
            Path(name).replace(self._kept)
        self._written.unlink()
