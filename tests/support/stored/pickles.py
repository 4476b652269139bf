"""Pickles of what users pickle: records and errors, for instance on their way between processes, in
a queue on disk or in a cache."""

from __future__ import annotations

import base64
import json
import pickle
import pickletools
from pathlib import Path
from typing import Final

from tests.support.stored.made import stored_objects

__all__ = ["PROTOCOL", "make", "modules_named", "read"]

PROTOCOL: Final = 4
"""The default of Python 3.11 to 3.13."""
_FILE: Final = "pickles.json"


def make(folder: Path) -> None:
    """Write all of them into one file."""
    found = {
        name: base64.b64encode(pickle.dumps(each, PROTOCOL)).decode()
        for name, each in stored_objects().items()
    }
    (folder / _FILE).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def read(folder: Path) -> dict[str, bytes]:
    """The pickles, by the name under which users find the class."""
    said: dict[str, str] = json.loads((folder / _FILE).read_text(encoding="utf-8"))
    return {name: base64.b64decode(text) for name, text in said.items()}


def modules_named(data: bytes) -> set[str]:
    """Which modules of ours a pickle imports when it is read."""
    texts = {told for _, told, _ in pickletools.genops(data) if isinstance(told, str)}
    ours = ("kip848_client", "mock_coordinator")
    return {text for text in texts if text.partition(".")[0] in ours}
