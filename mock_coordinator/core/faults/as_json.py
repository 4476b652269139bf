"""Faults in JSON, for test files and command lines.

::

    {"match": {"api": "OffsetCommit", "group": "g"}, "times": 3, "error": "REQUEST_TIMED_OUT"}
    {"match": {"api": "Fetch", "topic": "t", "partition": 0}, "corrupt_batch": true}
    {"match": {"client": "c1"}, "times": null, "delay_ms": 200, "of": "request"}

One of ``error`` (with ``message``), ``answer`` (the response's fields), ``delay_ms``, ``drop``,
``disconnect`` (with ``after_bytes``), ``throttle_ms``, ``duplicate``, ``corrupt_batch`` and
``move_coordinator`` says what happens. ``drop`` and ``disconnect`` name the moment: ``"request"``
(the broker never sees it) or ``"response"`` (it does, and the client does not learn of it).
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from kip848_client.error_codes import ErrorCode
from kip848_client.errors import ConfigError
from kip848_client.wire import api_named
from kip848_client.wire._fields import FieldSpec, field_specs
from mock_coordinator.core.faults.actions import (
    Action,
    Answer,
    CorruptBatch,
    Delay,
    Disconnect,
    Drop,
    Duplicate,
    Moment,
    MoveCoordinator,
    Refuse,
    Throttle,
)
from mock_coordinator.core.faults.fault import Fault
from mock_coordinator.core.faults.match import Match

__all__ = ["fault_from_json", "faults_from_json"]

_Fields = dict[str, Any]

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
    """The faults of a JSON list (or of one object). Raises ``ConfigError`` that says where."""
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
    """One fault from the value that ``json.loads`` gives. Raises ``ConfigError``."""
    fields = _object(row, "a fault")
    match = _match(_object(fields.pop("match", {}), "match"))
    nth, times = _number(fields, "nth", 1) or 0, fields.pop("times", 1)
    if times is not None and (not isinstance(times, int) or isinstance(times, bool)):
        raise ConfigError(f"times = {times!r}: expected a number, or null for ever")
    name = _text(fields, "name") or ""
    kinds = [kind for kind in _ACTIONS if kind in fields]
    if len(kinds) != 1:
        raise ConfigError(f"expected one of {', '.join(_ACTIONS)}; found {kinds or 'none'}")
    action = _ACTIONS[kinds[0]](fields, match)
    if fields:
        raise ConfigError(f"unknown: {', '.join(sorted(fields))}")
    return Fault(action, match, nth, times, name)


def _match(fields: _Fields) -> Match:
    values: dict[str, Any] = {}
    for name, attribute in _MATCH.items():
        if name in ("node", "partition"):
            values[attribute] = _number(fields, name, None)
        else:
            values[attribute] = _text(fields, name)
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
        raise ConfigError(f"match: {', '.join(sorted(fields))} is none of {known}")
    return Match(**values)


# --- Actions --------------------------------------------------------------------------------------


def _error(fields: _Fields, _match: Match) -> Action:
    value = fields.pop("error")
    message = _text(fields, "message")
    if isinstance(value, str) and value in ErrorCode.__members__:
        return Refuse(ErrorCode[value], message)
    if isinstance(value, int) and not isinstance(value, bool):
        return Refuse(value, message)
    raise ConfigError(f"error = {value!r}: expected Kafka's name of an error, or its code")


def _answer(fields: _Fields, match: Match) -> Action:
    if match.api is None:
        raise ConfigError("answer needs match.api")
    try:
        api = api_named(match.api)
    except KeyError as err:
        raise ConfigError(f"there is no API {match.api!r}") from err
    return Answer(_struct(api.response, fields.pop("answer"), match.api))


def _delay(fields: _Fields, _match: Match) -> Action:
    return Delay(_number(fields, "delay_ms", 0) or 0, _moment(fields.pop("of", "response"), "of"))


def _drop(fields: _Fields, _match: Match) -> Action:
    return Drop(_moment(fields.pop("drop"), "drop"))


def _disconnect(fields: _Fields, _match: Match) -> Action:
    moment = _moment(fields.pop("disconnect"), "disconnect")
    return Disconnect(moment, _number(fields, "after_bytes", None))


def _throttle(fields: _Fields, _match: Match) -> Action:
    return Throttle(_number(fields, "throttle_ms", 0) or 0)


def _duplicate(fields: _Fields, _match: Match) -> Action:
    _require_true(fields, "duplicate")
    return Duplicate()


def _corrupt(fields: _Fields, _match: Match) -> Action:
    _require_true(fields, "corrupt_batch")
    return CorruptBatch()


def _move(fields: _Fields, _match: Match) -> Action:
    if fields["move_coordinator"] == "next":
        del fields["move_coordinator"]
        return MoveCoordinator()
    return MoveCoordinator(_number(fields, "move_coordinator", None))


_ACTIONS: Final[dict[str, Callable[[_Fields, Match], Action]]] = {
    "error": _error,
    "answer": _answer,
    "delay_ms": _delay,
    "drop": _drop,
    "disconnect": _disconnect,
    "throttle_ms": _throttle,
    "duplicate": _duplicate,
    "corrupt_batch": _corrupt,
    "move_coordinator": _move,
}


# --- Values ---------------------------------------------------------------------------------------


def _object(value: object, what: str) -> _Fields:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{what}: expected an object, not {value!r}")
    return dict(cast("Mapping[str, Any]", value))


def _text(fields: _Fields, name: str) -> str | None:
    value = fields.pop(name, None)
    if value is not None and not isinstance(value, str):
        raise ConfigError(f"{name} = {value!r}: expected a text")
    return value


def _number(fields: _Fields, name: str, default: int | None) -> int | None:
    value = fields.pop(name, default)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise ConfigError(f"{name} = {value!r}: expected a number")
    return value


def _moment(value: object, name: str) -> Moment:
    if value not in ("request", "response"):
        raise ConfigError(f"{name} = {value!r}: expected request or response")
    return Moment(value)


def _require_true(fields: _Fields, name: str) -> None:
    if fields.pop(name) is not True:
        raise ConfigError(f"{name}: expected true")


def _struct(cls: type[Any], value: object, where: str) -> Any:
    """A message from its fields in JSON; bytes and ids are base64."""
    fields = _object(value, where)
    values: dict[str, Any] = {}
    for name, spec, _ in field_specs(cls):
        if name in fields:
            values[name] = _value(spec, fields.pop(name), f"{where}.{name}")
    if fields:
        raise ConfigError(f"{where} has no {', '.join(sorted(fields))}")
    return cls(**values)


def _value(spec: FieldSpec, value: Any, where: str) -> Any:
    if value is None:
        return None
    if spec.kind == "array":
        if not isinstance(value, list):
            raise ConfigError(f"{where}: expected a list")
        rows = cast("list[object]", value)
        if isinstance(spec.element, type):
            element = spec.element
            return tuple(_struct(element, each, f"{where}[{i}]") for i, each in enumerate(rows))
        return tuple(rows)
    if spec.kind == "struct" and isinstance(spec.element, type):
        return _struct(spec.element, value, where)
    if spec.kind in ("bytes", "uuid"):
        try:
            padded = str(value) + "=" * (-len(str(value)) % 4)
            return base64.urlsafe_b64decode(padded)
        except (binascii.Error, ValueError) as err:
            raise ConfigError(f"{where}: expected base64, not {value!r}") from err
    return value
