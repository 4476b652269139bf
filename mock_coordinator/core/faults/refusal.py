"""The response that refuses a whole request with one error, for any API.

Kafka has one rule for all APIs: the error is at the top if the version has a field for it,
otherwise in every row that the request asked for. Rows are found by comparing the two messages: an
array with errors in the response corresponds to an array in the request.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kip848_client.core.wire import APIS
from kip848_client.core.wire._fields import FieldSpec, Message, field_specs
from kip848_client.error_codes import default_message

__all__ = ["refusal"]

_ERRORS: Final = ("error_code", "partition_error_code")

_SOURCES: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("FetchResponse", "responses"): ("topics",),
    ("AlterUserScramCredentialsResponse", "results"): ("deletions", "upsertions"),
    ("DeleteTopicsResponse", "responses"): ("topics", "topic_names"),
}
"""Response arrays whose request array cannot be derived from name and position."""

_ALIASES: Final[dict[str, tuple[str, ...]]] = {
    "partition_index": ("partition_index", "partition", "index"),
    "partition": ("partition", "partition_index"),
    "user": ("name",),
    "topic_name": ("topic_name", "name"),
}
"""Field of a response row -> fields of the request row that it repeats."""

_UNKNOWN: Final[dict[str, dict[str, Any]]] = {
    "ProduceResponsePartitionProduceResponse": {
        "base_offset": -1,
        "log_append_time_ms": -1,
        "log_start_offset": -1,
    },
    "FetchResponsePartitionData": {
        "high_watermark": -1,
        "last_stable_offset": -1,
        "log_start_offset": -1,
        "records": b"",
    },
    "ListOffsetsResponseListOffsetsPartitionResponse": {"timestamp": -1, "offset": -1},
    "OffsetFetchResponsePartition": {"committed_offset": -1, "committed_leader_epoch": -1},
    "JoinGroupResponse": {"generation_id": -1},
    "InitProducerIdResponse": {"producer_id": -1, "producer_epoch": -1},
    "FindCoordinatorResponse": {"node_id": -1, "port": -1},
    "FindCoordinatorResponseCoordinator": {"node_id": -1, "port": -1},
}
"""Values that Kafka sends along with an error, if they differ from the field's default."""


def refusal(request: Message, version: int, code: int, message: str | None = None) -> Message:
    """Build the response of the request's API in this version with the error everywhere.

    ``message`` is used where the response has a field for one; ``None`` is Kafka's text for the
    code.
    """
    text = default_message(code) if message is None else message
    response: Message = _Refusal(version, code, text).of(
        APIS[type(request).API_KEY].response, request
    )
    return response


class _Refusal:
    """Fills one response."""

    def __init__(self, version: int, code: int, message: str | None) -> None:
        self._version = version
        self._code = code
        self._message = message

    def of(self, response: type[Any], source: Any) -> Any:
        """An instance of a response struct that answers ``source``: a struct of the request, or an
        element of one of its arrays."""
        specs = [(name, spec) for name, spec, _ in field_specs(response) if self._carries(spec)]
        names = {name for name, _ in specs}
        unknown = _UNKNOWN.get(response.__name__, {})
        fixed = {name: value for name, value in unknown.items() if name in names}
        values: dict[str, Any] = dict(fixed)
        for name, spec in specs:
            if name in _ERRORS:
                values[name] = self._code
            elif name == "error_message":
                values[name] = self._message
            elif spec.kind == "array":
                stops = not names.isdisjoint(_ERRORS)
                if not stops and isinstance(spec.element, type) and self._has_error(spec.element):
                    values[name] = self._rows(response, name, spec.element, source)
            elif spec.kind != "struct" and name not in fixed:
                self._repeat(values, name, spec, source)
        return response(**values)

    def _rows(self, response: type[Any], name: str, element: type[Any], source: Any) -> Any:
        chosen = _SOURCES.get((response.__name__, name))
        arrays = dict(self._arrays(source))
        if chosen is None:
            chosen = (name,) if name in arrays else tuple(arrays)
            if len(chosen) != 1:
                return ()
        return tuple(self.of(element, each) for field in chosen for each in arrays.get(field) or ())

    def _arrays(self, source: Any) -> Iterator[tuple[str, Any]]:
        for name, spec, _ in field_specs(type(source)) if _is_struct(source) else ():
            if spec.kind == "array" and self._carries(spec):
                yield name, getattr(source, name)

    def _repeat(self, values: dict[str, Any], name: str, spec: FieldSpec, source: Any) -> None:
        """Copy what names the row: its topic, partition, group, ..."""
        if _is_struct(source):
            fields = {each for each, _, _ in field_specs(type(source))}
            for alias in _ALIASES.get(name, (name,)):
                if alias in fields:
                    values[name] = getattr(source, alias)
                    return
            return
        kind = "string" if isinstance(source, str) else "int32"
        if spec.kind == kind and source not in values.values():
            values[name] = source  # the first field of its kind is the row's name

    def _has_error(self, element: type[Any]) -> bool:
        return any(
            self._carries(spec)
            and (
                name in _ERRORS
                or (isinstance(spec.element, type) and self._has_error(spec.element))
            )
            for name, spec, _ in field_specs(element)
        )

    def _carries(self, spec: FieldSpec) -> bool:
        return self._version in spec.versions or self._version in spec.tagged


def _is_struct(value: Any) -> bool:
    return hasattr(value, "__dataclass_fields__")
