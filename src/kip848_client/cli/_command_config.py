"""``--command-config FILE``: Kafka's client properties as the settings of an ``Admin``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from kip848_client.config import AdminConfig, client_settings
from kip848_client.errors import ConfigError

__all__ = ["read_properties", "settings_from"]

_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_SEPARATOR: Final = re.compile(r"(?<!\\)(?:\s*[=:]\s*|\s+)")


def settings_from(file: str | None) -> dict[str, Any]:
    """Read the settings from a file. Raises ``ConfigError``."""
    if file is None:
        return {}
    try:
        settings = client_settings(read_properties(Path(file).read_text(encoding="utf-8-sig")))
        AdminConfig.of(settings)
    except (OSError, ValueError) as err:  # a ``ConfigError`` is a ``ValueError``, too
        wrong = f"--command-config {file}: {err}"
    else:
        return settings
    raise ConfigError(wrong)  # outside: Python's error may hold the whole file


def read_properties(text: str) -> dict[str, str]:
    """Parse Java's properties format: ``key=value`` lines, ``#`` and ``!`` comments, a backslash at
    the end of a continued line."""
    found: dict[str, str] = {}
    whole = ""
    for line in text.splitlines():
        part = line.lstrip()
        if not whole and (not part or part[0] in "#!"):
            continue
        slashes = len(part) - len(part.rstrip("\\"))
        if slashes % 2:
            whole += part[:-1]
            continue
        _take(whole + part, found)
        whole = ""
    if whole:
        _take(whole, found)
    return found


def _take(line: str, found: dict[str, str]) -> None:
    parts = _SEPARATOR.split(line, maxsplit=1)
    found[_unescaped(parts[0])] = _unescaped(parts[1]) if len(parts) > 1 else ""


def _unescaped(text: str) -> str:
    return re.sub(r"\\u([0-9a-fA-F]{4})|\\(.)", _character, text)


def _character(found: re.Match[str]) -> str:
    if found[1] is not None:
        return chr(int(found[1], 16))
    return _ESCAPES.get(found[2], found[2])
