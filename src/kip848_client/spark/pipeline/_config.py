"""The settings of a pipeline, from which docs/reference/pipeline.md is generated.

The text below a setting is its description there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    model_validator,
)

from kip848_client.core.secrets import Properties
from kip848_client.spark.pipeline._until import NOW, until_options, until_text

__all__ = [
    "AVAILABLE_NOW",
    "BATCH_DIRECTORIES",
    "TOPIC",
    "DecodeSettings",
    "PipelineConfig",
    "RunSettings",
    "SinkSettings",
    "SourceSettings",
    "TimeUnit",
    "TransformSettings",
]

BATCH_DIRECTORIES: Final = "parquet"
"""The format with one directory per batch."""
TOPIC: Final = "kip848"
"""The format for topics."""
TimeUnit = Literal["hour", "day"]
"""The time that one directory is for."""
AVAILABLE_NOW: Final = "available-now"
"""The trigger of a run that ends by itself."""
_VARIABLE: Final = re.compile(r"\$\{(\w+)\}")
_TRIGGER: Final = r"^(available-now|\d+ (milliseconds?|seconds?|minutes?|hours?))$"


def _texts(said: Any) -> Any:
    """Options as strings: nested mappings, which TOML makes from keys with dots, as one level;
    numbers and booleans in Spark's form; ``${NAME}`` from the environment."""
    if not isinstance(said, Mapping):
        return said
    found: dict[str, str] = {}
    for name, value in said.items():
        if isinstance(value, Mapping):
            found |= {f"{name}.{inner}": text for inner, text in _texts(value).items()}
        elif isinstance(value, bool):
            found[str(name)] = "true" if value else "false"
        else:
            found[str(name)] = _VARIABLE.sub(_from_environment, str(value))
    return found


def _from_environment(found: re.Match[str]) -> str:
    try:
        return os.environ[found[1]]
    except KeyError:
        raise ValueError(f"environment variable {found[1]} is not set") from None


Options = Annotated[
    dict[str, str],
    BeforeValidator(_texts),
    AfterValidator(Properties),
    PlainSerializer(lambda options: Properties(options).masked()),
]
"""Options by name. ``repr`` and dumps mask passwords."""


class _Settings(BaseModel):
    """Base of the sections: frozen; unknown names are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class SourceSettings(_Settings):
    """``[source]``: the input."""

    bootstrap_servers: str = Field(min_length=1)
    """``host:port``, several separated by commas."""
    topics: tuple[str, ...] = ()
    """The names of the topics."""
    topic_pattern: str | None = None
    """Instead of ``topics``: a regular expression that must match the whole topic name."""
    group: str | None = Field(None, min_length=1)
    """The consumer group. Without one the pipeline's progress is not visible to group tools."""
    engine: Literal["python", "jvm"] = "python"
    """``python``: the format ``kip848``. ``jvm``: Spark's own source, which is never a member of
    the group. It commits its offsets to the group but does not start from them. Its package
    ``org.apache.spark:spark-sql-kafka-0-10_2.13``, in Spark's version, must be among the
    ``packages`` of ``[run]``.
    """
    ownership: Literal["shared", "exclusive"] | None = None
    """``shared``: a member of the group, which reads its assigned partitions. ``exclusive``: reads
    all partitions; commits offsets to the group, which must have no members. ``None``: ``shared``
    with a ``group`` and ``engine = "python"``, otherwise ``exclusive``.
    """
    starting: Literal["earliest", "latest"] = "earliest"
    """Where to start without a checkpoint, in partitions without committed offsets."""
    max_records_per_batch: int = Field(200_000, ge=0)
    """The maximum number of offsets in one batch; 0: no limit."""
    options: Options = Field(default_factory=dict[str, str])
    """Other options of the format ``kip848``, such as Kafka's with the prefix ``kafka.``.
    ``${NAME}`` is replaced from the environment, so that passwords need not be in the file.
    """

    @model_validator(mode="after")
    def _check(self) -> Self:
        if bool(self.topics) == bool(self.topic_pattern):
            raise ValueError("set exactly one of topics and topic_pattern")
        if self.ownership == "shared" and self.group is None:
            raise ValueError("ownership = 'shared' needs a group")
        if self.ownership == "shared" and self.engine == "jvm":
            raise ValueError("engine = 'jvm' cannot join a group: use ownership = 'exclusive'")
        return self

    @property
    def is_shared(self) -> bool:
        """Whether the pipeline is a member of its group."""
        may_be = self.group is not None and self.engine == "python"
        return (self.ownership or ("shared" if may_be else "exclusive")) == "shared"


class DecodeSettings(_Settings):
    """``[decode]``: how the bytes of ``value`` are decoded. Other columns are unchanged."""

    format: Literal["none", "text", "json", "avro", "protobuf"] = "none"
    """``none``: bytes. ``text``: a string. The others: a structure with fields. ``avro`` and
    ``protobuf`` need Spark's packages of that name (``packages`` of ``[run]``), unless they have a
    ``registry``.
    """
    registry: str | None = Field(None, pattern=r"^https?://")
    """The address of a schema registry, several separated by commas: values are those of
    Confluent's serializers for ``avro``, ``json`` (with JSON Schema) or ``protobuf``. Executors ask
    the registry for the schemas of records, and need the extra ``schema-registry``.
    """
    registry_options: Options = Field(default_factory=dict[str, str])
    """Settings of confluent-kafka's client for registries, such as ``basic.auth.user.info`` and
    ``ssl.ca.location``. ``${NAME}`` is replaced from the environment.
    """
    subject: str | None = Field(None, min_length=1)
    """The subject in the registry whose schema fixes the columns. Without it: the topic's name and
    ``-value``, if the source has one topic.
    """
    version: int | Literal["latest"] = "latest"
    """The version of that schema. ``latest`` is the newest at the start of the pipeline."""
    columns: str | None = None
    """For ``json``: the fields as SQL columns, such as ``id bigint, name string``. With a
    ``registry``, only for schemas that Spark has no type for."""
    schema_file: str | None = None
    """For ``avro``: the schema in JSON (``.avsc``). For ``protobuf``: the descriptors that
    ``protoc --descriptor_set_out --include_imports`` writes."""
    message: str | None = None
    """For ``protobuf``: the name of the message. With a ``registry`` and without a name: the first
    message of the schema."""
    skip_bytes: int = Field(0, ge=0)
    """The number of bytes to skip before the value: 5 for Avro, 6 for Protobuf with a schema
    registry, if all records have the same schema.
    """
    on_error: Literal["fail", "drop", "dead-letter"] = "fail"
    """What happens to a record that cannot be decoded: the pipeline ends with an error that names
    it; the record is dropped and counted; or it is written to ``dead_letter`` unchanged.
    """
    dead_letter: str | None = None
    """The directory for ``on_error = "dead-letter"``: Parquet files, one directory per batch."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        has_registry = self.registry is not None
        if has_registry and self.format in ("none", "text"):
            raise ValueError("registry needs format = 'avro', 'json' or 'protobuf'")
        if "@" in (self.registry or ""):
            raise ValueError(
                "registry has a login: set it in registry_options (basic.auth.user.info), which is "
                "never shown"
            )
        if has_registry and self.skip_bytes:
            raise ValueError("skip_bytes cannot be set with registry, which reads these bytes")
        if not has_registry and (self.registry_options or self.subject is not None):
            raise ValueError("registry_options and subject need registry")
        wanted = {
            "columns": self.format == "json" and not has_registry,
            "schema_file": self.format in ("avro", "protobuf") and not has_registry,
            "message": self.format == "protobuf" and not has_registry,
            "dead_letter": self.on_error == "dead-letter",
        }
        optional = {"columns": "json", "message": "protobuf"} if has_registry else {}
        for name, is_wanted in wanted.items():
            is_there = getattr(self, name) is not None
            if is_wanted and not is_there:
                what = "on_error" if name == "dead_letter" else "format"
                raise ValueError(f"{what} = {getattr(self, what)!r} needs {name}")
            if is_there and not is_wanted and optional.get(name) != self.format:
                raise ValueError(f"{name} cannot be set with format = {self.format!r}")
        return self


class TransformSettings(_Settings):
    """``[transform]``: turns decoded records into output rows. Without it they are written
    unchanged.
    """

    function: str | None = Field(None, pattern=r"^[\w.]+:[\w.]+$")
    """``package.module:function``, which takes a DataFrame and returns one. It is called once per
    batch.
    """
    sql: str | None = None
    """Instead of ``function``: a query over the view ``records``."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.function is not None and self.sql is not None:
            raise ValueError("set only one of function and sql")
        return self


class SinkSettings(_Settings):
    """``[sink]``: the output."""

    format: str = BATCH_DIRECTORIES
    """``parquet``: one directory per batch. ``kip848``: a topic. Any other: a format that Spark's
    streams can write, such as ``delta`` or ``iceberg`` if their packages are available.
    """
    path: str | None = None
    """The output directory."""
    table: str | None = None
    """Instead of ``path``, for table formats: the name of the table."""
    topic: str | None = None
    """For ``kip848``: the topic of all rows; a column ``topic`` is ignored."""
    bootstrap_servers: str | None = None
    """For ``kip848``: the brokers; ``None``: those of ``[source]``."""
    partition_by: tuple[str, ...] = ()
    """Columns to partition the output by."""
    partition_by_time: Literal["hour", "day"] | None = None
    """For ``parquet``: directories by the timestamp of the record, in UTC, such as
    ``date=2026-11-26/hour=18``, in place of directories of batches. Files are named by topic,
    partition and first offset, and an offset is written once, also after a new checkpoint. The rows
    must have the columns ``topic``, ``partition``, ``offset`` and ``timestamp`` of the records.
    """
    options: Options = Field(default_factory=dict[str, str])
    """Options of the format."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.partition_by_time is not None:
            if self.format != BATCH_DIRECTORIES:
                raise ValueError("partition_by_time needs format = 'parquet'")
            if any(name.lower() == "maxrecordsperfile" for name in self.options):
                raise ValueError(
                    "options.maxRecordsPerFile cannot be set with partition_by_time: a file is "
                    "named by its first offset, and has all records up to the next file"
                )
        if self.format == TOPIC:
            if self.path is not None or self.table is not None or self.partition_by:
                raise ValueError(
                    "path, table and partition_by cannot be set with format = 'kip848'"
                )
        elif self.topic is not None or self.bootstrap_servers is not None:
            raise ValueError("topic and bootstrap_servers need format = 'kip848'")
        elif self.format == BATCH_DIRECTORIES and self.path is None:
            raise ValueError("format = 'parquet' needs path")
        elif (self.path is None) == (self.table is None):
            raise ValueError("set exactly one of path and table")
        return self


class RunSettings(_Settings):
    """``[run]``: how the pipeline runs."""

    checkpoint: str = Field(min_length=1)
    """The directory of Spark's checkpoint. It belongs to the output: an output with another
    checkpoint is refused.
    """
    trigger: str = Field("1 second", pattern=_TRIGGER)
    """How often a batch starts: ``10 seconds``, or ``0 seconds`` for no pause; ``available-now``:
    process the records that exist at the start, then stop.
    """
    until: Annotated[str | None, BeforeValidator(until_text)] = None
    """Where the run ends, with exit code 0: ``now`` (the records that exist at the start), a time
    with its offset from UTC (``2026-11-26T18:00:00Z``: in each partition up to the first record
    with that timestamp or a later one), or offsets of all partitions
    (``{"orders": {"0": 500, "1": -1}}``, -1 is the end). It needs ``trigger = "available-now"``,
    which is the default then.
    """
    master: str = "local[*]"
    """Spark's master: ``local[*]`` is this machine; ``spark://HOST:PORT``, ``yarn`` or
    ``k8s://...`` is a cluster."""
    name: str = "kip848 pipeline"
    """The application's name in Spark."""
    packages: tuple[str, ...] = ()
    """Maven packages that Spark downloads, such as ``org.apache.spark:spark-avro_2.13:4.3.0``."""
    py_files: tuple[str, ...] = ()
    """Python files (``.py``, ``.zip``) for the executors, such as one with functions that a
    transform calls for each row.
    """
    ship: bool = True
    """On a cluster, send this package in pure Python to the executors, which prefer it to an
    installed version; dependencies (``aiokafka`` etc.) are not included. Use ``false`` if all
    machines have the package installed, with its C extension.
    """
    archives: tuple[str, ...] = ()
    """Archives (``.zip``, ``.tar.gz``) that Spark unpacks next to the executors, such as a Python
    environment: ``environment.tar.gz#environment`` names the directory.
    """
    spark: Options = Field(default_factory=dict[str, str])
    """Settings of Spark."""
    log_level: Literal["off", "error", "warn", "info"] = "off"
    """The level of Spark's own log on standard error. An error that ends the pipeline is always
    printed.
    """

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.until is None:
            return self
        try:
            until_options(self.until)
        except ValueError as err:
            raise ValueError(f"until {err}") from None
        if "trigger" in self.model_fields_set and self.trigger != AVAILABLE_NOW:
            raise ValueError(
                f"until ends the run, but trigger = {self.trigger!r} goes on for ever: set trigger "
                f"= {AVAILABLE_NOW!r}, or leave it out"
            )
        return self

    @property
    def is_bounded(self) -> bool:
        """Whether the run ends by itself."""
        return self.until is not None or self.trigger == AVAILABLE_NOW


class PipelineConfig(_Settings):
    """All settings of a pipeline. ``load_config`` reads them from TOML.

    Attributes:
        source: ``[source]``: what is read.
        decode: ``[decode]``: how records become rows.
        transform: ``[transform]``: what is done with rows.
        sink: ``[sink]``: where rows are written.
        run: ``[run]``: how the pipeline runs.
    """

    source: SourceSettings
    decode: DecodeSettings = DecodeSettings.model_validate({})
    transform: TransformSettings = TransformSettings.model_validate({})
    sink: SinkSettings
    run: RunSettings

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.decode.on_error == "dead-letter" and self.sink.format != BATCH_DIRECTORIES:
            raise ValueError(
                "decode.on_error = 'dead-letter' needs sink.format = 'parquet'; with "
                f"{self.sink.format!r} use 'fail' or 'drop'"
            )
        if self.run.until not in (None, NOW) and self.source.engine == "jvm":
            raise ValueError(
                "run.until with source.engine = 'jvm' must be 'now': Spark's own source has no "
                "other end for a stream"
            )
        has_one_topic = len(self.source.topics) == 1
        if self.decode.registry is not None and self.decode.subject is None and not has_one_topic:
            raise ValueError("decode.registry needs decode.subject, unless source.topics has one")
        if self.sink.partition_by_time is not None and self.source.engine == "jvm":
            raise ValueError(
                "sink.partition_by_time needs source.engine = 'python', which reports the offsets "
                "of a batch"
            )
        paths = [self.sink.path, self.run.checkpoint, self.decode.dead_letter]
        said = [path.rstrip("/") for path in paths if path is not None]
        if len(set(said)) < len(said):
            raise ValueError("sink.path, run.checkpoint and decode.dead_letter must differ")
        return self
