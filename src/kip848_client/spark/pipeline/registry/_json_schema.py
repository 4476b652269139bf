"""JSON with a schema: values are validated by the schema that they were written with."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from kip848_client.errors import ConfigError
from kip848_client.spark.pipeline.registry._client import Schema, UnknownSchema
from kip848_client.spark.pipeline.registry.core._json_kinds import json_kind
from kip848_client.spark.pipeline.registry.core._kinds import Kind

__all__ = ["JsonReader"]

_START: Final = 5


class JsonReader:
    """The reader's schema.

    Args:
        schema: The schema that fixes the columns.

    Raises:
        ConfigError: It is not a JSON Schema, or Spark has no type for it.
    """

    def __init__(self, schema: Schema) -> None:
        try:
            _validator(schema)
            others = {name: json.loads(text) for name, text in schema.references}
            content = json.loads(schema.text)
        except (UnknownSchema, ValueError) as err:
            raise ConfigError(f"the schema that fixes the columns: {err}") from err
        self.kind: Kind = json_kind(content, others)

    def of(self, schema: Schema) -> Callable[[bytes], Any]:
        """Prepare to decode records.

        Args:
            schema: The schema that they were written with.

        Returns:
            A function from the bytes to a value. It raises any exception for bad bytes.

        Raises:
            UnknownSchema: The schema is not a JSON Schema.
        """
        validator = _validator(schema)

        def decode(value: bytes) -> Any:
            found = json.loads(value[_START:], parse_constant=_refuse)
            validator.validate(found)
            return found

        return decode


def _refuse(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def _validator(schema: Schema) -> Any:
    import jsonschema  # type: ignore[import-untyped]  # its types are a package apart
    import referencing
    from jsonschema.validators import (  # type: ignore[import-untyped]  # as above, apart
        validator_for,
    )
    from referencing.jsonschema import DRAFT7

    try:
        content = json.loads(schema.text)
        kind: Any = validator_for(content, default=jsonschema.Draft7Validator)
        kind.check_schema(content)
        others: list[tuple[str, Any]] = [
            (name, DRAFT7.create_resource(json.loads(text))) for name, text in schema.references
        ]
        known: Any = referencing.Registry().with_resources(others)
        return kind(_without_id(content), registry=known)
    except (ValueError, jsonschema.SchemaError) as err:
        raise UnknownSchema(f"not a JSON Schema: {type(err).__name__}: {err}") from err


def _without_id(schema: Any) -> Any:
    """References are by the names in the registry, not relative to an address."""
    if not isinstance(schema, Mapping):
        return schema
    return {name: each for name, each in schema.items() if name not in ("$id", "id")}
