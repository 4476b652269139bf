"""Faults in JSON, for test files and command lines.

::

    {"match": {"api": "OffsetCommit", "group": "g"}, "times": 3, "error": "REQUEST_TIMED_OUT"}
    {"match": {"api": "Fetch", "topic": "t", "partition": 0}, "corrupt_batch": true}
    {"match": {"client": "c1"}, "times": null, "delay_ms": 200, "of": "request"}

Each fault has one action: ``error`` (with ``message``), ``answer`` (the response's fields),
``delay_ms``, ``drop``, ``disconnect`` (with ``after_bytes``), ``throttle_ms``, ``duplicate``,
``corrupt_batch`` or ``move_coordinator``. ``drop`` and ``disconnect`` name the moment:
``"request"`` (the broker does not receive it) or ``"response"`` (the broker handles it, but the
client gets no response).
"""

from __future__ import annotations

import json
from typing import Any, Final, cast

from kip848_client.errors import ConfigError
from mock_coordinator.core.faults.actions import Action
from mock_coordinator.core.faults.fault import Fault
from mock_coordinator.core.faults.json_values import Fields, json_number, json_object, json_text
from mock_coordinator.core.faults.match import Match

__all__ = ["fault_from_json", "faults_from_json"]

_ACTIONS: Final = {action.json_name: action for action in Action.__subclasses__()}

_MATCH: Final = {
    "api": "api",
    "node": "node_id",
    "client": "client_id",
    "group": "group_id",
    "transactional_id": "transactional_id",
    "member": "member_id",
    "topic": "topic",
    "partition": "partition",
}


def faults_from_json(text: str) -> tuple[Fault, ...]:
    """Read faults from JSON: a list, or one object. See docs/reference/faults.md.

    Args:
        text: The JSON text.

    Raises:
        ConfigError: With the number of the fault, for invalid JSON or an invalid fault.
    """
    try:
        found = json.loads(text)
    except ValueError as err:
        raise ConfigError(f"faults: not JSON: {err}") from err
    rows = cast("list[object]", found) if isinstance(found, list) else [found]
    faults: list[Fault] = []
    for number, row in enumerate(rows, 1):
        try:
            faults.append(fault_from_json(row))
        except ConfigError as err:
            raise ConfigError(f"fault {number}: {err}") from err
    return tuple(faults)


def fault_from_json(row: object) -> Fault:
    """Read one fault from a decoded JSON object. Raises ``ConfigError``."""
    fields = json_object(row, "a fault")
    match = _match(json_object(fields.pop("match", {}), "match"))
    nth, times = json_number(fields, "nth", 1) or 0, fields.pop("times", 1)
    if times is not None and (not isinstance(times, int) or isinstance(times, bool)):
        raise ConfigError(f"times = {times!r}: expected a number, or null for no limit")
    name = json_text(fields, "name") or ""
    kinds = [kind for kind in _ACTIONS if kind in fields]
    if len(kinds) != 1:
        raise ConfigError(f"expected one of {', '.join(_ACTIONS)}; found {kinds or 'none'}")
    action = _ACTIONS[kinds[0]].from_json(fields, match)
    if fields:
        raise ConfigError(f"unknown fields: {', '.join(sorted(fields))}")
    return Fault(action, match, nth, times, name)


def _match(fields: Fields) -> Match:
    values: dict[str, Any] = {}
    for name, attribute in _MATCH.items():
        if name in ("node", "partition"):
            values[attribute] = json_number(fields, name, None)
        else:
            values[attribute] = json_text(fields, name)
    versions = fields.pop("version", None)
    if isinstance(versions, int):
        versions = [versions, versions]
    if versions is not None:
        pair = cast("list[object]", versions) if isinstance(versions, list) else []
        if len(pair) != 2 or not all(isinstance(each, int) for each in pair):
            raise ConfigError(f"version = {versions!r}: expected a number, or [lowest, highest]")
        values["versions"] = tuple(pair)
    if fields:
        known = ", ".join([*_MATCH, "version"])
        raise ConfigError(f"match: unknown fields: {', '.join(sorted(fields))} (known: {known})")
    return Match(**values)
