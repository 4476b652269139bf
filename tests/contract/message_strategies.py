"""Random messages of any class, and what one version can carry of them.

The strategies follow from the field metadata of the dataclasses, so a new message is covered when
it is in the registry. One drawn message serves all versions of its class: ``fitted`` keeps what a
version carries. Drawing is the slow part, encoding is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from hypothesis import strategies as st

from kip848_client.core.wire import APIS, DRAFT_API_KEYS
from kip848_client.core.wire._fields import NEVER, FieldSpec, field_specs

__all__ = [
    "DRAFT_TAGS_FROM",
    "draft_classes",
    "fitted",
    "is_draft_field",
    "is_flexible",
    "kafka_classes",
    "messages",
    "versions_of",
]

DRAFT_TAGS_FROM: Final = 10480
"""Tags of our own fields in Kafka's messages (docs/reference/draft-protocols.md)."""

_TEXT: Final = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=6),
    st.integers(60, 300).map(lambda size: "k" * size),  # lengths around one and two varint bytes
)
_DATA: Final = st.one_of(
    st.binary(max_size=6), st.integers(120, 20_000).map(lambda size: b"\x5a" * size)
)
_PRIMITIVES: Final[dict[str, st.SearchStrategy[Any]]] = {
    "bool": st.booleans(),
    "int8": st.integers(-(2**7), 2**7 - 1),
    "int16": st.integers(-(2**15), 2**15 - 1),
    "uint16": st.integers(0, 2**16 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "uint32": st.integers(0, 2**32 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "float64": st.floats(allow_nan=False, allow_infinity=False),
    "uuid": st.binary(min_size=16, max_size=16),
    "string": _TEXT,
    "bytes": _DATA,
}


def kafka_classes() -> list[type[Any]]:
    """Request and response class of every API that Kafka has."""
    apis = [api for key, api in APIS.items() if key not in DRAFT_API_KEYS]
    return [cls for api in apis for cls in (api.request, api.response)]


def draft_classes() -> list[type[Any]]:
    """Request and response class of every API that only we have."""
    apis = [APIS[key] for key in DRAFT_API_KEYS]
    return [cls for api in apis for cls in (api.request, api.response)]


def versions_of(cls: type[Any]) -> Iterator[int]:
    low, high = cls.VERSIONS
    return iter(range(low, high + 1))


def is_flexible(cls: type[Any], version: int) -> bool:
    """Whether the version has compact lengths and tagged fields (KIP-482)."""
    first: int = cls.FLEXIBLE
    return version >= first >= 0


def is_draft_field(spec: FieldSpec) -> bool:
    return spec.tag >= DRAFT_TAGS_FROM


def messages(cls: type[Any], *, drafts: bool = True) -> st.SearchStrategy[Any]:
    """Random instances of a message or struct class.

    Half of the optional fields hold their default, so that absent tagged fields are met as often as
    present ones. ``drafts=False`` leaves our own tagged fields of Kafka's messages unset.
    """
    fields: dict[str, st.SearchStrategy[Any]] = {}
    for name, spec, default in field_specs(cls):
        if is_draft_field(spec) and not drafts:
            continue
        some = _values(spec, drafts=drafts)
        if spec.nullable != NEVER:
            some = st.one_of(st.none(), some)
        if spec.tag >= 0 and spec.kind != "struct":
            some = st.one_of(st.just(default), some)
        fields[name] = some
    return st.builds(_keywords(cls), st.fixed_dictionaries(fields))


def _keywords(cls: type[Any]) -> Callable[[dict[str, Any]], Any]:
    return lambda fields: cls(**fields)


def _values(spec: FieldSpec, *, drafts: bool) -> st.SearchStrategy[Any]:
    if spec.kind == "struct":
        assert isinstance(spec.element, type)
        whole = messages(spec.element, drafts=drafts)
        return st.one_of(st.just(spec.element()), whole) if spec.tag >= 0 else whole
    if spec.kind != "array":
        return _PRIMITIVES[spec.kind]
    if isinstance(spec.element, type):
        inner = messages(spec.element, drafts=drafts)
        return st.lists(inner, max_size=2).map(tuple)
    return st.lists(_PRIMITIVES[str(spec.element)], max_size=4).map(tuple)


def fitted(message: Any, version: int, *, flexible: bool | None = None) -> Any:
    """The message with only what the version carries: other fields at their default, a null where
    the version knows none replaced by the empty value."""
    cls = type(message)
    compact = is_flexible(cls, version) if flexible is None else flexible
    kept: dict[str, Any] = {}
    for name, spec, _ in field_specs(cls):
        if version in spec.versions or (compact and version in spec.tagged):
            value = getattr(message, name)
            kept[name] = _fitted_value(spec, value, version, flexible=compact)
    return cls(**kept)


def _fitted_value(spec: FieldSpec, value: Any, version: int, *, flexible: bool) -> Any:
    if value is None:
        if version in spec.nullable:
            return None
        empty: dict[str, Any] = {"string": "", "bytes": b"", "array": ()}
        return empty[spec.kind]
    if spec.kind == "struct":
        return fitted(value, version, flexible=flexible)
    if spec.kind == "array" and isinstance(spec.element, type):
        return tuple(fitted(each, version, flexible=flexible) for each in value)
    return value
