"""Reads and validates ``pipeline.toml``; an error has the line of the setting."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

from pydantic import BaseModel, ValidationError

from kip848_client.core.secrets import shown_setting
from kip848_client.errors import ConfigError
from kip848_client.spark.pipeline._config import PipelineConfig

__all__ = ["config_from", "load_config"]

_HEADER: Final = re.compile(r"^\s*\[\s*([^\[\]]+?)\s*\]\s*(?:#.*)?$")
_KEY: Final = re.compile(r"""^\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"))*)\s*=""")
_OPTIONS: Final = (("options",), ("spark",))
"""Settings that hold other settings, which may be passwords."""
_PART: Final = re.compile(r"""[\w-]+|"([^"]*)"|'([^']*)'""")


def load_config(file: str | Path) -> PipelineConfig:
    """Read the settings of a pipeline from TOML.

    Args:
        file: The path.

    Returns:
        The settings, for ``Pipeline``.

    Raises:
        ConfigError: The file cannot be read, or a setting is wrong. The text has the file, the
            line, the setting and what is accepted.
    """
    path = Path(file)
    try:
        text = path.read_text(encoding="utf-8")
        said = tomllib.loads(text)
    except (OSError, UnicodeDecodeError) as err:
        wrong = f"{file}: {err}"
    except tomllib.TOMLDecodeError as err:
        wrong = f"{file} is not valid TOML: {err}"
    else:
        return config_from(said, str(file), text)
    raise ConfigError(wrong)  # outside: Python's error may hold the whole file


def config_from(
    said: Mapping[str, Any], file: str | None = None, text: str | None = None
) -> PipelineConfig:
    """Check the settings of a pipeline.

    Args:
        said: Values by name, as in ``PipelineConfig``.
        file: Name of the file that has them, for errors.
        text: Its text, for the line in errors.

    Returns:
        The settings, for ``Pipeline``.

    Raises:
        ConfigError: A setting is wrong; the text names the first one.
    """
    try:
        return PipelineConfig.model_validate(said)
    except ValidationError as err:
        # a misspelt name is the reason why another one is missing
        first = min(err.errors(), key=lambda each: each["type"] != "extra_forbidden")
        loc = tuple(str(part) for part in first["loc"])
        line = None if text is None else _line_of(loc, text)
        place = "" if file is None else f"{file}: " if line is None else f"{file}:{line}: "
        more = err.error_count() - 1
        rest = f" ({more} more wrong)" if more else ""
        wrong = f"{place}{_described(loc, first)}{rest}"
    raise ConfigError(wrong)  # outside: pydantic's error holds all settings


def _described(loc: Sequence[str], error: Any) -> str:
    name = ".".join(loc)
    if error["type"] == "extra_forbidden":
        known = _names_at(loc[:-1])
        close = difflib.get_close_matches(loc[-1], known, cutoff=0.5)
        meant = f"did you mean {close[0]}?" if close else f"known are {', '.join(known)}"
        return f"unknown setting {name}; {meant}"
    if error["type"] == "missing":
        return f"setting {name} is missing"
    message = str(error["msg"]).removeprefix("Value error, ")
    given = error.get("input")
    is_plain = isinstance(given, str | int | float | bool) and loc[-1:] not in _OPTIONS
    shown = f" (got {shown_setting(name, given)})" if is_plain else ""
    return f"{name}: {message}{shown}" if name else f"{message}{shown}"


def _names_at(loc: Sequence[str]) -> list[str]:
    model: type[BaseModel] = PipelineConfig
    for part in loc:
        model = cast("type[BaseModel]", model.model_fields[part].annotation)
    return list(model.model_fields)


def _line_of(loc: Sequence[str], text: str) -> int | None:
    """The line of a setting, otherwise of the table it belongs to."""
    wanted, found = list(loc), None
    depth = 0
    table: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        header = _HEADER.match(line)
        key = None if header else _KEY.match(line)
        if header:
            here = table = _parts(header[1])
        elif key:
            here = [*table, *_parts(key[1])]
        else:
            continue
        common = len(here) if here == wanted[: len(here)] else 0
        if common > depth:
            depth, found = common, number
    return found


def _parts(name: str) -> list[str]:
    return [found[1] or found[2] or found[0] for found in _PART.finditer(name)]
