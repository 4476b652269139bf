"""Decodes bytes to fields, and marks the records that cannot be decoded.

Such records have ``True`` in the temporary column ``BAD``, and keep their bytes. The caller decides
what happens to them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import functions as F  # noqa: N812 - everybody's name
from pyspark.sql.types import BooleanType, DataType, StringType, StructField, StructType

from kip848_client.errors import ConfigError, SchemaUnavailable
from kip848_client.spark.pipeline._config import DecodeSettings
from kip848_client.spark.pipeline._spark_kinds import kind_of
from kip848_client.spark.pipeline.registry import Registry, RegistryDecoder

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["BAD", "POISON", "Decoding", "bad_records", "good_only", "good_or_raise"]

BAD: Final = "__kip848_bad"
_RAW: Final = "__kip848_raw"
POISON: Final = "kip848: poison record"
"""How the error for a record that cannot be decoded begins."""
_TEXT: Final = "__kip848_text"
_PARSED: Final = "__kip848_parsed"
_MISSING: Final = {
    "avro": "spark-avro",
    "protobuf": "spark-protobuf",
}


class Decoding:
    """Decodes ``value`` as the settings say.

    Args:
        settings: ``[decode]``.
        topic: The topic of the source, which names the subject of a registry.
    """

    def __init__(self, settings: DecodeSettings, topic: str = "") -> None:
        self._settings = settings
        self._topic = topic
        self._decoder: RegistryDecoder | None = None

    def prepare(self) -> None:
        """Ask the registry, if there is one, for the schema that fixes the columns: once per start
        of a pipeline. Raises ``ConfigError``."""
        settings = self._settings
        form = settings.format
        if settings.registry is None:
            return
        if form == "none" or form == "text":  # noqa: PLR1714 - mypy does not narrow by a tuple
            return
        options, columns = settings.registry_options, settings.columns
        try:
            with Registry(settings.registry, options, form) as registry:
                self._decoder = RegistryDecoder.of(
                    registry,
                    settings.registry,
                    options,
                    form,
                    subject=settings.subject or f"{self._topic}-value",
                    version=str(settings.version),
                    message=settings.message,
                    kind=None if columns is None else kind_of(_fields(columns)),
                    bad=BAD,
                )
        except SchemaUnavailable as err:
            raise ConfigError(str(err)) from err

    def decoded(self, frame: DataFrame) -> DataFrame:
        """Decode ``value``, and add ``BAD``. A null ``value`` stays null, and is not bad. Raises
        ``ConfigError`` for an invalid schema or a missing package."""
        settings = self._settings
        frame = frame.withColumn(_RAW, F.col("value"))
        if self._decoder is not None:
            return _by_registry(frame, self._decoder)
        if settings.skip_bytes:
            rest = F.expr(f"substring(value, {settings.skip_bytes + 1})")
            frame = frame.withColumn("value", rest)
        match settings.format:
            case "none":
                return frame.withColumn(BAD, F.lit(False))
            case "text":
                return frame.withColumn("value", F.col("value").cast("string")).withColumn(
                    BAD,
                    F.lit(False),
                )
            case "json":
                return _from_json(frame, _fields(settings.columns or ""))
            case "avro" | "protobuf":
                return _from_package(frame, settings)


def good_or_raise(frame: DataFrame) -> DataFrame:
    """Remove ``BAD``. A record that cannot be decoded fails its task with an error that names the
    record, so that no record is lost silently."""
    message = F.concat(
        F.lit(f"{POISON}: topic "),
        F.col("topic"),
        F.lit(", partition "),
        F.col("partition").cast("string"),
        F.lit(", offset "),
        F.col("offset").cast("string"),
    )
    is_good = F.when(F.col(BAD), F.raise_error(message).cast("boolean")).otherwise(F.lit(True))
    return frame.where(is_good).drop(BAD, _RAW)


def good_only(frame: DataFrame) -> DataFrame:
    """The decoded records."""
    return frame.where(~F.col(BAD)).drop(BAD, _RAW)


def bad_records(frame: DataFrame) -> DataFrame:
    """The records that could not be decoded, with their bytes."""
    columns = [
        F.col(_RAW).alias(name) if name == "value" else F.col(name) for name in frame.columns
    ]
    return frame.where(F.col(BAD)).select(columns).drop(BAD, _RAW)


def _fields(columns: str) -> StructType:
    try:
        found: DataType = StructType.fromDDL(columns)
    except ParseException as err:
        raise ConfigError(f"decode.columns = {columns!r}: {_first_line(err)}") from err
    if not isinstance(found, StructType) or not found.fields:
        raise ConfigError(
            f"decode.columns = {columns!r}: no fields, as in 'id bigint, name string'"
        )
    return found


def _by_registry(frame: DataFrame, decoder: RegistryDecoder) -> DataFrame:
    """Decode in the Python processes of executors."""
    value = DataType.fromDDL(decoder.ddl)
    fields = [
        StructField(each.name, value if each.name == "value" else each.dataType)
        for each in frame.schema.fields
    ]
    return frame.mapInArrow(decoder, StructType([*fields, StructField(BAD, BooleanType())]))


def _from_json(frame: DataFrame, fields: StructType) -> DataFrame:
    """Decode JSON. Spark's parser puts text that it cannot parse into a separate field."""
    schema = StructType([*fields.fields, StructField(_TEXT, StringType())])
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _TEXT}
    parsed = F.from_json(F.col("value").cast("string"), schema, options)
    there = F.col("value").isNotNull()
    bad = there & (F.col(_PARSED).isNull() | F.col(f"{_PARSED}.{_TEXT}").isNotNull())
    fine = F.when(there, F.struct(*(F.col(f"{_PARSED}.`{each.name}`") for each in fields.fields)))
    columns = [fine.alias("value") if name == "value" else F.col(name) for name in frame.columns]
    marked = frame.withColumn(_PARSED, parsed).withColumn(BAD, F.coalesce(bad, F.lit(True)))
    return marked.select(*columns, BAD)


def _from_package(frame: DataFrame, settings: DecodeSettings) -> DataFrame:
    """Decode with Spark's own functions for Avro and Protobuf, which return null on failure."""
    parsed = _parsed_by_package(settings)
    try:
        marked = frame.withColumn(_PARSED, parsed)
    except AnalysisException as err:
        if "NOT_LOADED" in str(err):
            raise _not_there(settings.format) from err
        raise ConfigError(f"decode.schema_file {settings.schema_file}: {_first_line(err)}") from err
    except TypeError as err:  # "'JavaPackage' object is not callable"
        raise _not_there(settings.format) from err
    there, value = _PARSED, _PARSED
    if settings.format == "avro":
        there, value = f"{_PARSED}.inner", f"{_PARSED}.inner.it"
    bad = F.col(_RAW).isNotNull() & F.col(there).isNull()
    return marked.withColumn(BAD, bad).withColumn("value", F.col(value)).drop(_PARSED)


def _parsed_by_package(settings: DecodeSettings) -> Column:
    file = Path(settings.schema_file or "")
    try:
        content = file.read_bytes()
    except OSError as err:
        raise ConfigError(f"decode.schema_file: {err}") from err
    try:
        if settings.format == "avro":
            from pyspark.sql.avro.functions import from_avro

            return from_avro("value", _in_two_records(json.loads(content)), {"mode": "PERMISSIVE"})
        from pyspark.sql.protobuf.functions import from_protobuf

        return from_protobuf(
            "value",
            settings.message or "",
            options={"mode": "PERMISSIVE"},
            binaryDescriptorSet=content,
        )
    except (TypeError, AnalysisException) as err:
        raise _not_there(settings.format) from err
    except ValueError as err:  # not text, or not JSON
        raise ConfigError(f"decode.schema_file {file}: {err}") from err


def _in_two_records(schema: object) -> str:
    """Wrap a schema in two records of one field, which are encoded exactly like the field.

    If decoding fails, ``from_avro`` returns a record whose fields are null, as if the nulls had
    been written. With the wrapper the inner record is null only if decoding failed."""
    for name in ("it", "inner"):
        record = f"kip848_with_{name}"
        schema = {"type": "record", "name": record, "fields": [{"name": name, "type": schema}]}
    return json.dumps(schema)


def _not_there(kind: str) -> ConfigError:
    import pyspark

    package = f"org.apache.spark:{_MISSING[kind]}_2.13:{pyspark.__version__}"
    return ConfigError(
        f"decode.format = {kind!r} needs Spark's package for it, which this session lacks: "
        f"set run.packages = [{package!r}]"
    )


def _first_line(err: Exception) -> str:
    return str(err).strip().splitlines()[0]
