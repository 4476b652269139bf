"""Serializers and deserializers that are told whose bytes they make or get.

A ``Consumer`` and a ``Producer`` take functions of one argument. Whoever needs the topic, or the
headers, inherits one of the classes here; its method is awaited::

    class ByTopic(ContextDeserializer[str]):
        async def deserialize(self, data: bytes | None, context: SerializationContext) -> str:
            return f"{context.topic}: {data!r}"


    consumer = Consumer("orders", "invoices", value_deserializer=ByTopic(), ...)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from kip848_client.errors import LocalProtocolError

__all__ = ["ContextDeserializer", "ContextSerializer", "SerializationContext"]

Made_co = TypeVar("Made_co", covariant=True)
Given_contra = TypeVar("Given_contra", contravariant=True)


class SerializationContext(NamedTuple):
    """Where data comes from, or goes to."""

    topic: str
    field: Literal["key", "value"]
    headers: list[tuple[str, bytes | None]]
    """Of the record, in a list of its own. What a serializer appends is sent with the record."""


class ContextDeserializer(ABC, Generic[Made_co]):
    """A deserializer that is awaited, and told the topic, whether it is a key or a value, and the
    record's headers. What it raises becomes ``RecordUnreadable``."""

    @abstractmethod
    async def deserialize(self, data: bytes | None, context: SerializationContext) -> Made_co:
        """What the application sees. ``data`` is ``None`` for a null key or value."""

    async def __call__(self, _data: bytes | None, /) -> Made_co:
        """What makes it a deserializer for type checkers. ``Consumer`` calls ``deserialize``."""
        raise _told_nothing(self, "deserialize")


class ContextSerializer(ABC, Generic[Given_contra]):
    """A serializer that is awaited, and told the topic, whether it makes a key or a value, and the
    record's headers. What it raises ``Producer.send`` raises, and nothing was sent."""

    @abstractmethod
    async def serialize(self, data: Given_contra, context: SerializationContext) -> bytes | None:
        """The bytes of what was given to ``send``; ``None`` for a null key or value."""

    def __call__(self, _data: Any, /) -> Any:
        """What makes it a serializer for type checkers. ``Producer`` calls ``serialize``."""
        raise _told_nothing(self, "serialize")


def _told_nothing(whose: object, method: str) -> LocalProtocolError:
    name = type(whose).__name__
    return LocalProtocolError(
        f"{name} has to be told the topic: kip848_client.Consumer and Producer do that, whoever "
        f"else has one awaits {name}.{method}(data, SerializationContext(...))"
    )
