"""``ProducerRecord``, and the valid results of a function."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from kip848_client.core.short import short
from kip848_client.errors import ConfigError

__all__ = ["Outputs", "ProducerRecord", "outputs_of"]


class ProducerRecord(NamedTuple):
    """A record to be sent. The fields are the arguments of ``Producer.send``.

    Attributes:
        topic: Name of the topic.
        key: Bytes, or an argument for the producer's ``key_serializer``.
        headers: Pairs of a name and bytes (or ``None``); ``None``: no headers.
    """

    topic: str
    value: Any = None
    """Bytes, or an argument for the producer's ``value_serializer``."""
    key: Any = None
    partition: int | None = None
    """``None``: chosen by the key, or by the producer."""
    timestamp_ms: int | None = None
    """Milliseconds since 1970; ``None``: now."""
    headers: Iterable[tuple[str, bytes | None]] | None = None


Outputs = ProducerRecord | Iterable[ProducerRecord] | None


def outputs_of(result: object) -> Sequence[ProducerRecord]:
    """All outputs in a list, so that none is sent if a later one fails. Raises ``ConfigError`` for
    an invalid output, and the errors of a generator."""
    if result is None:
        return ()
    if isinstance(result, ProducerRecord):
        return (result,)
    is_text = isinstance(result, str | bytes | bytearray | memoryview | Mapping)
    if is_text or not isinstance(result, Iterable):
        raise _wrong(result)
    found: list[ProducerRecord] = []
    for each in result:
        if not isinstance(each, ProducerRecord):
            raise _wrong(each)
        found.append(each)
    return found


def _wrong(value: object) -> ConfigError:
    return ConfigError(
        "the function returns None, a ProducerRecord or an iterable of them (or is a generator, or "
        f"async), not {short(value)}"
    )
