"""The headers of dead letters, which stay in topics: one of them names the module of an error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from kip848_client.processor._dead_letters import dead_letter_headers
from tests.support.stored.made import ERRORS, made, public_errors, record

__all__ = ["headers_of_all", "make", "read"]

_FILE: Final = "dead_letters.json"

Headers = dict[str, list[list[str | None]]]


def headers_of_all() -> Headers:
    """The headers of one record, by the error that made a dead letter of it. Values are texts here,
    one character a byte."""
    return {
        f"{kind.__module__}.{kind.__qualname__}": [
            [name, None if value is None else value.decode("latin-1")]
            for name, value in dead_letter_headers(record(), made(kind))
        ]
        for kind in public_errors(*ERRORS)
    }


def make(folder: Path) -> None:
    """Write all of them into one file."""
    text = json.dumps(headers_of_all(), indent=1)
    (folder / _FILE).write_text(text + "\n", encoding="utf-8")


def read(folder: Path) -> Headers:
    """What ``make`` wrote."""
    found: Headers = json.loads((folder / _FILE).read_text(encoding="utf-8"))
    return found
