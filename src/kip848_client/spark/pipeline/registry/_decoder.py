"""What executors run: from batches with bytes to batches with decoded values.

An executor's Python process runs many tasks. It keeps one client of the registry and the schemas
that it has asked for, so each schema is requested once per process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from kip848_client.core.secrets import Properties
from kip848_client.records._arrow import pyarrow
from kip848_client.spark.pipeline.registry._avro import AvroReader
from kip848_client.spark.pipeline.registry._client import Format, Registry, Schema, UnknownSchema
from kip848_client.spark.pipeline.registry._fitting import fitting
from kip848_client.spark.pipeline.registry._json_schema import JsonReader
from kip848_client.spark.pipeline.registry._protobuf import ProtobufReader
from kip848_client.spark.pipeline.registry.core._confluent_frame import Unframed, schema_id
from kip848_client.spark.pipeline.registry.core._kinds import (
    Decimals,
    Kind,
    List,
    Map,
    Struct,
    ddl_of,
)

__all__ = ["RegistryDecoder"]

_Reader = AvroReader | JsonReader | ProtobufReader
_Decode = Callable[[bytes], Any]
_ARROW: Final = {
    "boolean": "bool_",
    "int": "int32",
    "long": "int64",
    "float": "float32",
    "double": "float64",
    "string": "string",
    "binary": "binary",
    "date": "date32",
    "time_ms": "int32",
    "time_us": "int64",
}


@dataclass(frozen=True)
class RegistryDecoder:
    """Decodes the column ``value``. Spark sends it to executors."""

    url: str = field(repr=False)
    options: tuple[tuple[str, str], ...] = field(repr=False)
    """Settings of the registry's client."""
    form: Format
    schema: Schema
    """The schema that fixes the columns."""
    message: str | None
    """For Protobuf: the name of the message."""
    kind: Kind
    """The type of the column."""
    bad: str
    """The name of the column that is true for a record that cannot be decoded."""

    @classmethod
    def of(
        cls,
        registry: Registry,
        url: str,
        options: Mapping[str, str],
        form: Format,
        *,
        subject: str,
        version: str,
        message: str | None,
        kind: Kind | None,
        bad: str,
    ) -> RegistryDecoder:
        """Ask the registry for the schema that fixes the columns.

        Args:
            registry: A client for it.
            url: The address, for executors.
            options: Settings of the client, for executors.
            form: The format of the values.
            subject: The subject of the schema.
            version: A number, or ``latest``.
            message: For Protobuf: the name of the message; ``None``: the first of the file.
            kind: The type of the column; ``None``: that of the schema.
            bad: The name of the column for bad records.

        Returns:
            The decoder.

        Raises:
            ConfigError: There is no such schema, or Spark has no type for it.
            SchemaUnavailable: The registry gives no answer.
        """
        schema, _, _ = registry.of_subject(subject, version)
        found = kind
        if found is None:
            found = _reader_of(form, schema, message).kind
        settings = tuple(sorted(options.items()))
        return cls(url, settings, form, schema, message, found, bad)

    @property
    def ddl(self) -> str:
        """The type of the column as Spark writes it."""
        return ddl_of(self.kind)

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Decode Arrow batches.

        Args:
            batches: Record batches with a column ``value`` of bytes.

        Yields:
            The same with decoded values and a column for bad records at the end.

        Raises:
            SchemaUnavailable: The registry gives no answer.
        """
        decoding = _Decoding(self)
        for batch in batches:
            yield decoding.decoded(batch)


class _Decoding:
    """One task. An id that the registry does not know is asked for once per task: it may be
    registered later."""

    def __init__(self, decoder: RegistryDecoder) -> None:
        self._decoder = decoder
        self._process = _process_of(decoder)
        self._unknown: set[int] = set()
        self._type = _arrow_type(decoder.kind)

    def decoded(self, batch: Any) -> Any:
        pa = pyarrow()
        at = batch.schema.get_field_index("value")
        raw: list[bytes | None] = batch.column(at).to_pylist()
        values = [None if each is None else self._value(each) for each in raw]
        column = self._column(values)
        bad = [value is None and each is not None for value, each in zip(values, raw, strict=True)]
        columns = list(batch.columns)
        columns[at] = column
        names = [*batch.schema.names, self._decoder.bad]
        return pa.RecordBatch.from_arrays([*columns, pa.array(bad, pa.bool_())], names)

    def _value(self, data: bytes) -> Any:
        """What Arrow accepts; ``None`` for a record that cannot be decoded. Raises
        ``SchemaUnavailable``."""
        try:
            number = schema_id(data)
        except Unframed:
            return None
        decode = self._decode_of(number)
        if decode is None:
            return None
        try:
            return self._process.fit(decode(data))
        except Exception:  # noqa: BLE001 - bad bytes raise anything in the libraries of formats
            return None

    def _decode_of(self, number: int) -> _Decode | None:
        found = self._process.decodes.get(number)
        if found is not None or number in self._unknown:
            return found
        try:
            found = self._process.reader.of(self._process.registry.of_id(number))
        except UnknownSchema:
            self._unknown.add(number)
            return None
        self._process.decodes[number] = found
        return found

    def _column(self, values: list[Any]) -> Any:
        """A column of values. A value that Arrow refuses becomes ``None`` in the list, too."""
        pa = pyarrow()
        try:
            return pa.array(values, self._type)
        except (pa.ArrowException, OverflowError, ValueError, TypeError):
            for index, each in enumerate(values):
                try:
                    pa.array([each], self._type)
                except (pa.ArrowException, OverflowError, ValueError, TypeError):
                    values[index] = None
            return pa.array(values, self._type)


class _Process:
    """What a process keeps for its tasks."""

    def __init__(self, decoder: RegistryDecoder) -> None:
        options = Properties(decoder.options)
        self.registry = Registry(decoder.url, options, decoder.form)
        self.reader = _reader_of(decoder.form, decoder.schema, decoder.message)
        self.fit = fitting(decoder.kind)
        self.decodes: dict[int, _Decode] = {}


@cache
def _process_of(decoder: RegistryDecoder) -> _Process:
    return _Process(decoder)


def _reader_of(form: Format, schema: Schema, message: str | None) -> _Reader:
    match form:
        case "avro":
            return AvroReader(schema)
        case "json":
            return JsonReader(schema)
        case "protobuf":
            return ProtobufReader(schema, message)


def _arrow_type(kind: Kind) -> Any:
    pa = pyarrow()
    match kind:
        case Decimals(precision, scale):
            return pa.decimal128(precision, scale)
        case List(of):
            return pa.list_(_arrow_type(of))
        case Map(of, key):
            return pa.map_(_arrow_type(key), _arrow_type(of))
        case Struct(fields):
            return pa.struct([(name, _arrow_type(each)) for name, each in fields])
        case str():
            if "timestamp" in kind:
                return pa.timestamp("us", tz=None if kind.startswith("local") else "UTC")
            return getattr(pa, _ARROW[kind])()
