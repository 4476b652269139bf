"""Our messages as kio's entities.

kio has one class per message version, and richer types than the wire: error codes are an enum of
the codes that it knows, durations are ``timedelta`` and lose the ``_ms`` of their names,
timestamps are ``datetime`` of whole seconds. ``to_kio`` therefore first moves a random message to
the nearest one that kio can express, and returns both.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import io
import uuid
from typing import Any, Final

from kio.index import UnknownAPIKey, UnknownEntity, load_payload_module
from kio.schema.errors import ErrorCode as KioErrorCode
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from kip848_client.core.wire._fields import FieldSpec, field_specs

__all__ = ["kio_class", "kio_read", "kio_write", "to_kio"]

_KNOWN_CODES: Final = tuple(int(code.value) for code in KioErrorCode)
_RENAMED: Final = {"generation_id_or_member_epoch": "generation_id"}
"""Kafka 4.4 renamed this field of TxnOffsetCommit for a version (6) that kio does not have yet."""

_LATEST_SECOND: Final = 253_402_300_799  # of the year 9999


def kio_class(cls: type[Any], version: int) -> type[Any] | None:
    """kio's class of one of our messages in one version; ``None`` where kio has none."""
    kind = EntityType.request if cls.__name__.endswith("Request") else EntityType.response
    try:
        module = load_payload_module(cls.API_KEY, version, kind)
    except (UnknownAPIKey, UnknownEntity):
        return None
    found: type[Any] = getattr(module, cls.__name__)
    return found


def kio_write(entity: Any) -> bytes:
    buffer = io.BytesIO()
    entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()


def kio_read(cls: type[Any], data: bytes) -> Any:
    entity, size = entity_reader(cls)(data, 0)
    assert size == len(data), f"kio read {size} of {len(data)} bytes"
    return entity


def to_kio(message: Any, cls: type[Any]) -> tuple[Any, Any]:
    """(our message, kio's entity): the same content, as near to ``message`` as kio can say it."""
    ours: dict[str, Any] = {}
    theirs: dict[str, Any] = {}
    fields = {field.name: field for field in dataclasses.fields(cls)}
    for name, spec, _ in field_specs(type(message)):
        if cls.__version__ not in spec.versions and cls.__version__ not in spec.tagged:
            continue  # a later field, perhaps under the name that another had before
        their_name = name if name in fields else _RENAMED.get(name, name.removesuffix("_ms"))
        field = fields.pop(their_name, None)
        if field is not None:
            ours[name], theirs[their_name] = _item(getattr(message, name), spec, field)
    assert not fields, f"{cls.__name__} has fields that we lack: {sorted(fields)}"
    return type(message)(**ours), cls(**theirs)


def _item(item: Any, spec: FieldSpec, field: dataclasses.Field[Any]) -> tuple[Any, Any]:
    if item is None:
        return None, None
    if isinstance(spec.element, type):
        their_class = _entity_class(field.type)
        if spec.kind == "struct":
            return to_kio(item, their_class)
        pairs = [to_kio(each, their_class) for each in item]
        return tuple(each for each, _ in pairs), tuple(each for _, each in pairs)
    kind = str(field.metadata.get("kafka_type"))
    if spec.kind != "array":
        return _primitive(item, kind)
    pairs = [_primitive(each, kind) for each in item]
    return tuple(each for each, _ in pairs), tuple(each for _, each in pairs)


def _primitive(item: Any, kind: str) -> tuple[Any, Any]:
    if kind == "error_code":
        code = _KNOWN_CODES[item % len(_KNOWN_CODES)]
        return code, KioErrorCode(code)
    if kind == "timedelta_i32":
        return item, dt.timedelta(milliseconds=item)
    if kind == "timedelta_i64":
        item %= 2**46  # timedelta ends at 999,999,999 days
        return item, dt.timedelta(milliseconds=item)
    if kind == "datetime_i64":
        seconds = item % _LATEST_SECOND
        return seconds * 1000, dt.datetime.fromtimestamp(seconds, tz=dt.UTC)
    if kind == "uuid":
        return item, uuid.UUID(bytes=item) if any(item) else None
    return item, item


def _entity_class(annotation: Any) -> type[Any]:
    """The dataclass inside ``X``, ``X | None``, ``tuple[X, ...]`` or ``tuple[X, ...] | None``."""
    if dataclasses.is_dataclass(annotation) and isinstance(annotation, type):
        return annotation
    for inner in getattr(annotation, "__args__", ()):
        if inner not in (type(None), Ellipsis):
            return _entity_class(inner)
    raise AssertionError(f"no entity class in {annotation}")
