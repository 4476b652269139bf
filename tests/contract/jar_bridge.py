"""Our messages as the dicts that the jar codec reads, and back.

Kafka names its fields in camel case and we in snake case; which is which follows from the
definition.
"""

from __future__ import annotations

import re
from typing import Any, Final

from kip848_client.core.wire._fields import FieldSpec as OurSpec
from kip848_client.core.wire._fields import field_specs
from tests.support.jar_schemas import FieldSpec

__all__ = ["by_our_names", "from_jar_value", "snake_case", "to_jar_value"]

_RENAMED: Final = {"generation_id": "generation_id_or_member_epoch"}
"""Kafka 4.4 renamed this field of TxnOffsetCommit; the bytes of the older versions are the same."""


def snake_case(name: str) -> str:
    """``"SubscribedTopicRegex"`` -> ``"subscribed_topic_regex"``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def by_our_names(cls: type[Any], fields: tuple[FieldSpec, ...]) -> dict[str, FieldSpec]:
    """The fields of a definition, under the names that they have in our class."""
    ours = {name for name, _, _ in field_specs(cls)}
    named: dict[str, FieldSpec] = {}
    for each in fields:
        name = snake_case(each.name)
        named[name if name in ours else _RENAMED.get(name, name)] = each
    return named


def to_jar_value(message: Any, fields: tuple[FieldSpec, ...]) -> dict[str, Any]:
    """A message (or struct) as a dict by Kafka's names; fields that Kafka lacks must be unset."""
    theirs = by_our_names(type(message), fields)
    value: dict[str, Any] = {}
    for name, spec, default in field_specs(type(message)):
        item = getattr(message, name)
        if name in theirs:
            value[theirs[name].name] = _to_jar_item(item, spec, theirs[name])
        else:
            assert item == default, f"{name} is set, and the definition has no such field"
    return value


def _to_jar_item(item: Any, ours: OurSpec, theirs: FieldSpec) -> Any:
    if item is None:
        return None
    if ours.kind == "struct":
        return to_jar_value(item, theirs.fields)
    if ours.kind == "array" and isinstance(ours.element, type):
        return [to_jar_value(each, theirs.fields) for each in item]
    return list(item) if ours.kind == "array" else item


def from_jar_value(cls: type[Any], value: dict[str, Any], fields: tuple[FieldSpec, ...]) -> Any:
    """The instance of our class that a dict by Kafka's names stands for."""
    theirs = by_our_names(cls, fields)
    known: dict[str, Any] = {}
    for name, spec, _ in field_specs(cls):
        if name in theirs:
            known[name] = _from_jar_item(value[theirs[name].name], spec, theirs[name])
    return cls(**known)


def _from_jar_item(item: Any, ours: OurSpec, theirs: FieldSpec) -> Any:
    if item is None:
        return None
    if ours.kind == "struct":
        assert isinstance(ours.element, type)
        return from_jar_value(ours.element, item, theirs.fields)
    if ours.kind != "array":
        return item
    if isinstance(ours.element, type):
        return tuple(from_jar_value(ours.element, each, theirs.fields) for each in item)
    return tuple(item)
