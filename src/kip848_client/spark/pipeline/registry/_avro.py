"""Avro: values of any version become those of the reader's schema, by Avro's rules."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any, Final

from kip848_client.errors import ConfigError
from kip848_client.spark.pipeline.registry._client import Schema, UnknownSchema
from kip848_client.spark.pipeline.registry.core._avro_kinds import avro_kind
from kip848_client.spark.pipeline.registry.core._kinds import Kind

__all__ = ["AvroReader"]

_START: Final = 5


class AvroReader:
    """The reader's schema.

    Args:
        schema: The schema that fixes the columns.

    Raises:
        ConfigError: It is not Avro, or Spark has no type for it.
    """

    def __init__(self, schema: Schema) -> None:
        try:
            self._reader = _parsed(schema)
        except UnknownSchema as err:
            raise ConfigError(f"the schema that fixes the columns: {err}") from err
        others = tuple(json.loads(text) for _, text in schema.references)
        self.kind: Kind = avro_kind(json.loads(schema.text), others)

    def of(self, schema: Schema) -> Callable[[bytes], Any]:
        """Prepare to decode records.

        Args:
            schema: The schema that they were written with.

        Returns:
            A function from the bytes to a value. It raises any exception for bad bytes.

        Raises:
            UnknownSchema: The schema is not Avro.
        """
        import fastavro

        writer, reader = _parsed(schema), self._reader
        read: Any = fastavro.schemaless_reader

        def decode(value: bytes) -> Any:
            stream = io.BytesIO(value)
            stream.seek(_START)
            found = read(stream, writer, reader)
            if stream.tell() != len(value):
                raise ValueError("bytes are left after the value")
            return found

        return decode


def _parsed(schema: Schema) -> Any:
    from fastavro.schema import SchemaParseException, UnknownType, parse_schema

    named: dict[str, Any] = {}
    try:
        for _, text in schema.references:
            parse_schema(json.loads(text), named_schemas=named)
        return parse_schema(json.loads(schema.text), named_schemas=named)
    except (SchemaParseException, UnknownType, ValueError, KeyError, TypeError) as err:
        raise UnknownSchema(f"not an Avro schema: {type(err).__name__}: {err}") from err
