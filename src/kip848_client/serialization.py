"""Serializers and deserializers that get the topic and the headers of a record.

A ``Consumer`` and a ``Producer`` take functions of one argument. To get the topic or the headers,
inherit from one of the classes here; its method is awaited::

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
    """Where data comes from, or goes to.

    Attributes:
        topic: Name of the topic.
        field: ``key`` or ``value``.
    """

    topic: str
    field: Literal["key", "value"]
    headers: list[tuple[str, bytes | None]]
    """A copy of the record's headers. Headers that a serializer appends are sent with the
    record.
    """


class ContextDeserializer(ABC, Generic[Made_co]):
    """A deserializer that is awaited, and gets the topic, the field and the headers.

    Inherit from it, and give an object to ``Consumer`` as ``key_deserializer`` or
    ``value_deserializer``.
    """

    @abstractmethod
    async def deserialize(self, data: bytes | None, context: SerializationContext) -> Made_co:
        """Make what the application gets.

        Args:
            data: The bytes; ``None`` for a null key or value.
            context: Topic, field and headers of the record.

        Returns:
            The key or value of the ``Record``.

        Raises:
            Exception: Whatever your method raises; the call for records raises
                ``RecordUnreadable``.
        """

    async def __call__(self, _data: bytes | None, /) -> Made_co:
        """Makes it a deserializer for type checkers. ``Consumer`` calls ``deserialize``."""
        raise _told_nothing(self, "deserialize")


class ContextSerializer(ABC, Generic[Given_contra]):
    """A serializer that is awaited, and gets the topic, the field and the headers.

    Inherit from it, and give an object to ``Producer`` as ``key_serializer`` or
    ``value_serializer``.
    """

    @abstractmethod
    async def serialize(self, data: Given_contra, context: SerializationContext) -> bytes | None:
        """Make the bytes that are sent.

        Args:
            data: What the application passed to ``send``.
            context: Topic, field and headers of the record. Headers that are appended are sent.

        Returns:
            The bytes; ``None`` for a null key or value.

        Raises:
            Exception: Whatever your method raises; ``Producer.send`` raises it, and nothing is
                sent.
        """

    def __call__(self, _data: Any, /) -> Any:
        """Makes it a serializer for type checkers. ``Producer`` calls ``serialize``."""
        raise _told_nothing(self, "serialize")


def _told_nothing(whose: object, method: str) -> LocalProtocolError:
    name = type(whose).__name__
    return LocalProtocolError(
        f"{name} needs the topic, which only kip848_client.Consumer and Producer pass; elsewhere, "
        f"await {name}.{method}(data, SerializationContext(...))"
    )
