"""The classes of a broker, loaded and checked once for all its starts: each takes half as long.

A JVM can write what it has loaded into an archive when it ends, and another one maps that into its
memory (class data sharing, JEP 350). The first broker of a release that ends in good order leaves
one beside the jars. A JVM that finds that an archive does not fit its jars does without.
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

from tests.support.kafka_jars import find_java, kafka_libs

__all__ = ["ClassArchive"]

_DIGITS: Final = 12


@functools.cache
def _java_build() -> str:
    """What tells one Java from another: an archive serves the one that wrote it."""
    shown = subprocess.run([find_java(), "-version"], capture_output=True, check=False)
    return hashlib.sha256(shown.stderr).hexdigest()[:_DIGITS]


class ClassArchive:
    """The archive of a release, as one broker sees it, whose files are in ``folder``."""

    def __init__(self, version: str, folder: Path) -> None:
        self._kept = kafka_libs(version).parent / f"classes-{_java_build()}.jsa"
        self._written = folder / "classes.jsa"
        self.is_missing = not self._kept.exists()
        """Then this broker should end in good order, once."""

    def options(self) -> list[str]:
        """What to tell the JVM."""
        if self.is_missing:
            return [f"-XX:ArchiveClassesAtExit={self._written}"]
        return [f"-XX:SharedArchiveFile={self._kept}"]

    def keep(self) -> None:
        """Keep what the broker wrote when it ended. Others may do the same at this moment."""
        if not self._written.exists():
            return
        with contextlib.suppress(OSError):  # no room, or not our folder: the next one tries again
            number, name = tempfile.mkstemp(dir=self._kept.parent, suffix=".jsa")
            os.close(number)
            shutil.copyfile(self._written, name)
            Path(name).replace(self._kept)
        self._written.unlink()
