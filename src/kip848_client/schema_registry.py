"""Keys and values with schemas of a registry (``pip install '.[schema-registry]'``).

Wraps confluent-kafka's asynchronous serializers and deserializers for a ``Producer`` and a
``Consumer``::

    from confluent_kafka.schema_registry import AsyncSchemaRegistryClient
    from confluent_kafka.schema_registry.avro import AsyncAvroDeserializer
    from kip848_client import Consumer
    from kip848_client.schema_registry import SchemaDeserializer

    async with AsyncSchemaRegistryClient({"url": "http://localhost:8081"}) as registry:
        orders = SchemaDeserializer[Order | None](AsyncAvroDeserializer, registry)
        async with Consumer("orders", value_deserializer=orders, ...) as consumer:
            ...

The client of the registry caches schemas, so each schema is requested once.
docs/how-to/deserialize.md describes what happens to records without an available schema.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from traceback import walk_tb
from typing import Any, Final, Generic, TypeVar
from urllib.parse import urlsplit

from kip848_client.core.extras import installation
from kip848_client.core.short import short
from kip848_client.errors import ConfigError, SchemaUnavailable
from kip848_client.serialization import (
    ContextDeserializer,
    ContextSerializer,
    SerializationContext,
)

__all__ = ["SchemaDeserializer", "SchemaSerializer"]

T = TypeVar("T")

_Kind = Callable[..., Any]
"""A class of confluent-kafka; calling it returns an awaitable for an instance."""

_SERDE: Final = "confluent_kafka.schema_registry.serde"
_TIMEOUT_MS: Final = 60_000
_PASSING: Final = frozenset((408, 429, 500, 502, 503, 504))
"""HTTP status codes after which a retry may succeed."""
_LOGIN: Final = re.compile(r"//[^/\s]*@")
"""A user and a password in an address."""
_PARSES: Final = "_get_parsed_schema"
"""confluent-kafka's function that parses a schema."""


class SchemaDeserializer(ContextDeserializer[T], Generic[T]):
    """A deserializer for keys or values that looks up schemas in a registry.

    confluent-kafka's deserializer is created with the first record; it gets topic, field and
    headers. ``SchemaDeserializer[Order | None]`` names the type of the result for type checkers,
    which is not checked; ``None`` is for null. Several consumers of one event loop can share an
    object.

    Args:
        kind: ``AsyncAvroDeserializer``, ``AsyncJSONDeserializer`` or ``AsyncProtobufDeserializer``
            of confluent-kafka.
        *args: The arguments of ``kind``.
        timeout_ms: How long one record may take, in milliseconds, with all attempts of the
            registry's client, which has no limit of its own.
        **named: More arguments of ``kind``.

    Raises:
        ConfigError: ``kind`` is another class, ``timeout_ms`` is not positive, or the extra
            ``schema-registry`` is not installed.
    """

    def __init__(
        self, kind: _Kind, *args: Any, timeout_ms: int = _TIMEOUT_MS, **named: Any
    ) -> None:
        base = _library(_SERDE).AsyncBaseDeserializer
        _check(kind, base, "AsyncAvroDeserializer", timeout_ms)
        self._asking = _Asking(kind, args, named, timeout_ms)

    async def deserialize(self, data: bytes | None, context: SerializationContext) -> T:
        """Make what the application gets. ``Consumer`` calls it.

        Args:
            data: The bytes; ``None`` for a null key or value.
            context: Topic, field and headers of the record.

        Returns:
            What confluent-kafka's deserializer makes.

        Raises:
            SchemaUnavailable: The registry gave no usable schema in time; ``retriable`` is true
                if a retry may succeed.
            Exception: Whatever confluent-kafka's deserializer raises for these bytes.
        """
        made: T = await self._asking.made(data, context)
        return made


class SchemaSerializer(ContextSerializer[T], Generic[T]):
    """A serializer for keys or values that looks up schemas in a registry.

    confluent-kafka's serializer is created with the first record. It registers its schema with the
    first record of a topic, unless its ``auto.register.schemas`` is false.

    Args:
        kind: ``AsyncAvroSerializer``, ``AsyncJSONSerializer`` or ``AsyncProtobufSerializer`` of
            confluent-kafka.
        *args: The arguments of ``kind``.
        timeout_ms: How long one record may take, in milliseconds, with all attempts of the
            registry's client.
        **named: More arguments of ``kind``.

    Raises:
        ConfigError: ``kind`` is another class, ``timeout_ms`` is not positive, or the extra
            ``schema-registry`` is not installed.
    """

    def __init__(
        self, kind: _Kind, *args: Any, timeout_ms: int = _TIMEOUT_MS, **named: Any
    ) -> None:
        base = _library(_SERDE).AsyncBaseSerializer
        _check(kind, base, "AsyncAvroSerializer", timeout_ms)
        self._asking = _Asking(kind, args, named, timeout_ms)

    async def serialize(self, data: T, context: SerializationContext) -> bytes | None:
        """Make the bytes that are sent. ``Producer`` calls it.

        Args:
            data: What the application passed to ``send``.
            context: Topic, field and headers of the record.

        Returns:
            The bytes; ``None`` for a null key or value.

        Raises:
            SchemaUnavailable: The registry gave no usable schema in time; ``retriable`` is true
                if a retry may succeed.
            Exception: Whatever confluent-kafka's serializer raises for this data.
        """
        made: bytes | None = await self._asking.made(data, context)
        return made


class _Asking:
    """Calls confluent-kafka's object with a timeout, and attributes failures to the registry or the
    data.
    """

    def __init__(
        self, kind: _Kind, args: tuple[Any, ...], named: dict[str, Any], timeout_ms: int
    ) -> None:
        self._words = _library("confluent_kafka.serialization")
        self._make: Callable[[], Any] = partial(kind, *args, **named)
        self._theirs: Any = None
        """Created with the first record, because that may need the registry."""
        self._timeout_ms = timeout_ms
        client = _library("confluent_kafka.schema_registry").AsyncSchemaRegistryClient
        given = (*args, *named.values())
        self._client: Any = next((each for each in given if isinstance(each, client)), None)
        self._module = client.__module__
        self._where = _named(self._client)

    async def made(self, data: object, context: SerializationContext) -> Any:
        field = self._words.MessageField(context.field)
        told = self._words.SerializationContext(context.topic, field, context.headers)
        scope = asyncio.timeout(self._timeout_ms / 1000)
        try:
            async with scope:
                if self._theirs is None:
                    self._theirs = await self._make()
                return await self._theirs(data, told)
        except Exception as err:
            if isinstance(err, TimeoutError) and scope.expired():
                why = f"returned no schema within {self._timeout_ms} ms (timeout_ms)"
                raise self._failure(why, context, retriable=True) from err
            failure = await self._of_registry(err, context)
            if failure is None:
                raise
            raise failure from err

    async def _of_registry(
        self, error: Exception, context: SerializationContext
    ) -> SchemaUnavailable | None:
        """``None`` if the registry is not the cause."""
        passed = set(_passed_through(error))
        if any(module == self._module for module, _ in passed):
            status = getattr(error, "http_status_code", None)
            # a client that was closed raises a RuntimeError
            retriable = (
                status in _PASSING if status is not None else not isinstance(error, RuntimeError)
            )
            said = str(error) or "no answer"
            return self._failure(f"said: {type(error).__name__}: {said}", context, retriable)
        if any(function == _PARSES for _, function in passed):
            # an invalid schema is in the cache now: without this it would stay there
            if self._client is not None:
                await self._client.clear_caches()
            why = f"gave a schema that cannot be read: {type(error).__name__}: {error}"
            return self._failure(why, context, retriable=False)
        return None

    def _failure(
        self, why: str, context: SerializationContext, retriable: bool
    ) -> SchemaUnavailable:
        way_out = "a retry may succeed" if retriable else "fix it in the registry, then retry"
        return SchemaUnavailable(
            f"no schema for a {context.field} of {context.topic}: the schema registry "
            f"{self._where} {_LOGIN.sub('//', why)} ({way_out})",
            retriable=retriable,
        )


def _passed_through(error: Exception) -> Iterator[tuple[str, str]]:
    """The functions that an error came through, with the names of their modules."""
    for frame, _ in walk_tb(error.__traceback__):
        yield frame.f_globals.get("__name__", ""), frame.f_code.co_name


def _named(client: Any) -> str:
    """The registry's address, without a password."""
    config: Any = {} if client is None else client.config()
    found = [urlsplit(each.strip()) for each in str(config.get("url", "")).split(",")]
    return ", ".join(f"{each.scheme}://{each.netloc.rpartition('@')[2]}" for each in found)


def _check(kind: object, base: type, example: str, timeout_ms: object) -> None:
    if not (isinstance(kind, type) and issubclass(kind, base)):
        raise ConfigError(
            f"kind must be an asynchronous class of confluent-kafka, such as {example}, followed "
            f"by its arguments; not {short(kind)}"
        )
    if isinstance(timeout_ms, bool) or not isinstance(timeout_ms, int) or timeout_ms <= 0:
        raise ConfigError(
            f"timeout_ms must be a positive number of milliseconds, not {short(timeout_ms)}"
        )


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as err:
        raise ConfigError(
            f"the dependencies for schema registries are not installed ({err}): "
            f"{installation('schema-registry')}"
        ) from err
