"""``CommitLog``: which batches Spark has committed, from the files of its checkpoint.

Spark does not notify a source of that before it asks for the next batch, which may be hours later,
and never when the query stops. With the option ``checkpoint`` the source looks for itself.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import unquote, urlsplit

from kip848_client.errors import ConfigError
from kip848_client.spark.source.core._manifest import OURS, Manifest

__all__ = ["CommitLog"]

_HEAD: Final = 2
"""Lines of a file in ``offsets`` before those of the sources: its version, and metadata."""


class CommitLog:
    """The folders ``commits`` and ``offsets`` of a checkpoint on this machine.

    Raises ``ConfigError`` for a path on another file system.
    """

    def __init__(self, path: str) -> None:
        parts = urlsplit(path)
        if parts.scheme not in ("", "file") or not parts.path.startswith("/"):
            raise ConfigError(
                f"option checkpoint={path!r} is not an absolute path of this machine. Use "
                "QueryControl for a checkpoint on another file system"
            )
        self._folder = Path(unquote(parts.path) if parts.scheme else path)
        self._seen = -1

    def news(self, token: str) -> Manifest | None:
        """The manifest of the last committed batch, if it is new since the last call. ``token``
        tells the manifests of this query from those of its other sources."""
        last = self._last()
        if last is None or last == self._seen:
            return None
        for line in self._lines(last):
            try:
                said = json.loads(line)
            except ValueError:
                continue
            if isinstance(said, dict) and OURS in said:
                found = Manifest.of(cast("dict[str, Any]", said))
                if found.token == token:
                    self._seen = last
                    return found
        return None

    def _last(self) -> int | None:
        try:
            names = [each.name for each in (self._folder / "commits").iterdir()]
        except FileNotFoundError:  # the query has not begun
            return None
        return max((int(name) for name in names if name.isdecimal()), default=None)

    def _lines(self, number: int) -> list[str]:
        try:
            text = (self._folder / "offsets" / str(number)).read_text(encoding="utf-8")
        except FileNotFoundError:  # compacted meanwhile
            return []
        return text.splitlines()[_HEAD:]
