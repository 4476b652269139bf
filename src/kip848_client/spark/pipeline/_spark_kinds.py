"""The types of a registry's values for columns that the user names."""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
)

from kip848_client.errors import ConfigError
from kip848_client.spark.pipeline.registry.core._kinds import Decimals, Kind, List, Map, Struct

__all__ = ["kind_of"]

_PLAIN: Final[dict[type[DataType], str]] = {
    BooleanType: "boolean",
    IntegerType: "int",
    LongType: "long",
    FloatType: "float",
    DoubleType: "double",
    StringType: "string",
}


def kind_of(given: DataType) -> Kind:
    """The type of a column. Raises ``ConfigError`` for one that JSON values do not have."""
    match given:
        case StructType():
            return Struct(tuple((each.name, kind_of(each.dataType)) for each in given.fields))
        case ArrayType():
            return List(kind_of(given.elementType))
        case MapType():
            return Map(kind_of(given.valueType), kind_of(given.keyType))
        case DecimalType():
            return Decimals(given.precision, given.scale)
        case _ if type(given) in _PLAIN:
            return _PLAIN[type(given)]
        case _:
            raise ConfigError(
                f"decode.columns: a value of JSON has no type {given.simpleString()}; use string "
                "and convert it in the transform"
            )
