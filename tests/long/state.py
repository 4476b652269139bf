"""What has passed, in a file: a run that was stopped goes on where it stopped."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from tests.long.job import Part

__all__ = ["State"]

_WHAT: Final = "passed"


class State:
    """Of each part that has passed its command, its seconds and when that was.

    A part whose command has changed since has not passed. Raises ``ValueError`` for a file that is
    not of this kind.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._passed: dict[str, dict[str, Any]] = {}
        if path.exists():
            try:
                self._passed = dict(json.loads(path.read_text())[_WHAT])
            except (ValueError, TypeError, KeyError) as err:
                raise ValueError(
                    f"{path} says nothing about what has passed: remove it, or name another file"
                ) from err

    def has_passed(self, part: Part) -> bool:
        known = self._passed.get(part.name)
        # Python itself, the first word, may be another one
        return known is not None and known["command"] == list(part.command[1:])

    def seconds(self, part: Part) -> float:
        """How long it took. The part has passed."""
        return float(self._passed[part.name]["seconds"])

    def note(self, part: Part, seconds: float) -> None:
        """It has passed."""
        self._passed[part.name] = {
            "command": part.command[1:],
            "seconds": round(seconds, 1),
            "when": time.strftime("%Y-%m-%d %H:%M:%S"),
        }
        self._write()

    def forget(self, parts: Iterable[Part]) -> None:
        """They are to run again."""
        for part in parts:
            self._passed.pop(part.name, None)
        self._write()

    def _write(self) -> None:
        """A run that is killed meanwhile leaves the file as it was before."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        written = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        written.write_text(json.dumps({_WHAT: self._passed}, indent=1) + "\n")
        written.replace(self._path)
