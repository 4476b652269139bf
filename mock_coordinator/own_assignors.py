"""Server-side assignors of the user: objects, or names in ``group.consumer.assignors`` as
``module:Class``, where Kafka's brokers load a Java class by name."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kip848_client.core.assignors import BUILTIN, Assignor
from kip848_client.errors import ConfigError

__all__ = ["own_assignors"]

_SETTING: Final = "group.consumer.assignors"
_HIGHEST_VERSION: Final = 32767


def own_assignors(
    given: Sequence[object], config: Mapping[str, str] | None
) -> tuple[dict[str, Assignor], dict[str, str]]:
    """The assignors by their text in ``group.consumer.assignors``, and the settings.

    If that setting is missing, the ``given`` assignors come after Kafka's. Raises ``ConfigError``
    for an invalid assignor and for a name that is already in use.
    """
    settings = dict(config or {})
    found: dict[str, Assignor] = {}
    for each in given:
        assignor = _checked(each, f"assignors: {each!r}")
        _require_new(assignor.name, found)
        found[assignor.name] = assignor
    if _SETTING not in settings:
        if found:
            settings[_SETTING] = ",".join((*BUILTIN, *found))
        return found, settings
    names = set(found)
    for text in settings[_SETTING].split(","):
        path = text.strip()
        if ":" in path:
            loaded = _checked(_loaded(path), f"{_SETTING}: {path!r}")
            _require_new(loaded.name, names)
            names.add(loaded.name)
            found[path] = loaded
    return found, settings


def _require_new(name: str, taken: Mapping[str, object] | set[str]) -> None:
    if name in BUILTIN or name in taken:
        raise ConfigError(f"the assignor name {name!r} is already in use; choose another")


def _loaded(path: str) -> object:
    module, _, name = path.partition(":")
    try:
        return getattr(importlib.import_module(module), name)()
    except Exception as err:
        raise ConfigError(f"{_SETTING}: {path!r}: {type(err).__name__}: {err}") from err


def _is_version(value: object) -> bool:
    return type(value) is int and 0 <= value <= _HIGHEST_VERSION


def _checked(assignor: Any, where: str) -> Assignor:
    name = getattr(assignor, "name", None)
    if not isinstance(name, str) or not name.strip() or set(name) & set(",:"):
        raise ConfigError(f"{where}: name = {name!r}: expected a string without commas and colons")
    if not callable(getattr(assignor, "assign", None)):
        raise ConfigError(f"{where}: expected an object with a method assign(group, topics)")
    lowest, highest = (
        getattr(assignor, each, 0) for each in ("minimum_version", "maximum_version")
    )
    if not (_is_version(lowest) and _is_version(highest) and lowest <= highest):
        raise ConfigError(
            f"{where}: minimum_version = {lowest!r}, maximum_version = {highest!r}; expected two "
            f"integers from 0 to {_HIGHEST_VERSION}, the lower one first"
        )
    return assignor  # type: ignore[no-any-return]  # its parts were just looked at
