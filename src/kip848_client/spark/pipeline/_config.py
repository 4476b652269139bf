"""The settings of a pipeline: one table, from which docs/reference/pipeline.md is made.

The text below a setting says what it means.
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

__all__ = [
    "BATCH_DIRECTORIES",
    "TOPIC",
    "DecodeSettings",
    "PipelineConfig",
    "RunSettings",
    "SinkSettings",
    "SourceSettings",
    "TransformSettings",
]

BATCH_DIRECTORIES: Final = "parquet"
"""The format whose batches have directories of their own."""
TOPIC: Final = "kip848"
"""The format that writes to a topic."""
_VARIABLE: Final = re.compile(r"\$\{(\w+)\}")
_TRIGGER: Final = r"^(available-now|\d+ (milliseconds?|seconds?|minutes?|hours?))$"


def _texts(said: Any) -> Any:
    """``{"kafka": {"sasl": ..}}``, which is what TOML makes of a key with dots, as one level;
    numbers and truth values as Spark wants them; ``${NAME}`` from the environment."""
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
        raise ValueError(f"the environment has no variable {found[1]}") from None


Options = Annotated[
    dict[str, str],
    BeforeValidator(_texts),
    AfterValidator(Properties),
    PlainSerializer(lambda options: Properties(options).masked()),
]
"""Options by name. Neither ``repr`` nor a dump shows passwords."""


class _Settings(BaseModel):
    """Base of the sections: frozen, and without unknown names."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class SourceSettings(_Settings):
    """``[source]``: what is read."""

    bootstrap_servers: str = Field(min_length=1)
    """``host:port``, several with commas."""
    topics: tuple[str, ...] = ()
    """The topics, by name."""
    topic_pattern: str | None = None
    """Instead of ``topics``: all topics whose whole name this regular expression matches."""
    group: str | None = Field(None, min_length=1)
    """The consumer group. Without one nobody sees how far the pipeline is."""
    engine: Literal["python", "jvm"] = "python"
    """``python``: the format ``kip848``. ``jvm``: Spark's own source, which is never a member of
    the group; the group is told how far it is, and does not say where to begin. Its package
    ``org.apache.spark:spark-sql-kafka-0-10_2.13``, in Spark's version, must be among the
    ``packages`` of ``[run]``."""
    ownership: Literal["shared", "exclusive"] | None = None
    """``shared``: a member of the group, which has the partitions that the group gives it.
    ``exclusive``: all partitions; the group, which must have no members, is told the offsets.
    ``None``: ``shared`` with a ``group`` and ``engine = "python"``, else ``exclusive``."""
    starting: Literal["earliest", "latest"] = "earliest"
    """Where to begin without a checkpoint, in partitions of which the group has nothing."""
    max_records_per_batch: int = Field(200_000, ge=0)
    """So many offsets at most are read in one batch; 0: all that there are."""
    options: Options = Field(default_factory=dict[str, str])
    """Other options of the format ``kip848``, such as those of Kafka with ``kafka.`` before them.
    ``${NAME}`` is replaced from the environment: no password needs to be in a file."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if bool(self.topics) == bool(self.topic_pattern):
            raise ValueError("either topics or topic_pattern says what to read")
        if self.ownership == "shared" and self.group is None:
            raise ValueError("ownership = 'shared' needs a group")
        if self.ownership == "shared" and self.engine == "jvm":
            raise ValueError("engine = 'jvm' is no member of a group: ownership is 'exclusive'")
        return self

    @property
    def is_shared(self) -> bool:
        """Whether the pipeline is a member of its group."""
        may_be = self.group is not None and self.engine == "python"
        return (self.ownership or ("shared" if may_be else "exclusive")) == "shared"


class DecodeSettings(_Settings):
    """``[decode]``: what the bytes of ``value`` become. The other columns stay."""

    format: Literal["none", "text", "json", "avro", "protobuf"] = "none"
    """``none``: bytes. ``text``: a text. The others: a structure with fields. ``avro`` and
    ``protobuf`` need Spark's packages of that name (``packages`` of ``[run]``)."""
    columns: str | None = None
    """For ``json``: the fields as in SQL, such as ``id bigint, name string``."""
    schema_file: str | None = None
    """For ``avro``: the schema in JSON (``.avsc``). For ``protobuf``: the descriptors that
    ``protoc --descriptor_set_out --include_imports`` writes."""
    message: str | None = None
    """For ``protobuf``: the name of the message."""
    skip_bytes: int = Field(0, ge=0)
    """So many bytes before the value are left out: 5 for Avro, 6 for Protobuf of a schema registry,
    if all records have the one schema."""
    on_error: Literal["fail", "drop", "dead-letter"] = "fail"
    """What happens to a record that cannot be decoded: the pipeline ends and names it, it is left
    out and counted, or it is written to ``dead_letter`` as it came."""
    dead_letter: str | None = None
    """The directory for ``on_error = "dead-letter"``: Parquet, in directories of batches."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        wanted = {
            "columns": self.format == "json",
            "schema_file": self.format in ("avro", "protobuf"),
            "message": self.format == "protobuf",
            "dead_letter": self.on_error == "dead-letter",
        }
        for name, is_wanted in wanted.items():
            is_there = getattr(self, name) is not None
            if is_wanted and not is_there:
                what = "on_error" if name == "dead_letter" else "format"
                raise ValueError(f"{what} = {getattr(self, what)!r} needs {name}")
            if is_there and not is_wanted:
                raise ValueError(f"{name} has no meaning with format = {self.format!r}")
        return self


class TransformSettings(_Settings):
    """``[transform]``: from the decoded records to the rows that are written. Without one they are
    written as they are."""

    function: str | None = Field(None, pattern=r"^[\w.]+:[\w.]+$")
    """``package.module:function``, which takes a DataFrame and returns one. It is called for each
    batch, so that it sees one batch at a time."""
    sql: str | None = None
    """Instead: a query over the view ``records``."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.function is not None and self.sql is not None:
            raise ValueError("either function or sql, not both")
        return self


class SinkSettings(_Settings):
    """``[sink]``: where rows are written."""

    format: str = BATCH_DIRECTORIES
    """``parquet``: in directories of batches. ``kip848``: to a topic. Any other: what Spark's
    streams can write to, such as ``delta`` or ``iceberg`` where their packages are."""
    path: str | None = None
    """The output directory."""
    table: str | None = None
    """Instead of ``path``, for formats of tables: the name of the table."""
    topic: str | None = None
    """For ``kip848``: where all rows go, whatever their column ``topic`` says."""
    bootstrap_servers: str | None = None
    """For ``kip848``: the brokers; ``None``: those of ``[source]``."""
    partition_by: tuple[str, ...] = ()
    """Columns that become directories."""
    options: Options = Field(default_factory=dict[str, str])
    """Options of the format."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.format == TOPIC:
            if self.path is not None or self.table is not None or self.partition_by:
                raise ValueError("format = 'kip848' has neither path nor table nor partition_by")
        elif self.topic is not None or self.bootstrap_servers is not None:
            raise ValueError("topic and bootstrap_servers are for format = 'kip848'")
        elif self.format == BATCH_DIRECTORIES and self.path is None:
            raise ValueError("format = 'parquet' needs path")
        elif (self.path is None) == (self.table is None):
            raise ValueError("either path or table says where to write")
        return self


class RunSettings(_Settings):
    """``[run]``: how it runs."""

    checkpoint: str = Field(min_length=1)
    """The directory in which Spark keeps what it has done. It belongs to the output: with another
    checkpoint the output is refused."""
    trigger: str = Field("1 second", pattern=_TRIGGER)
    """How often a batch begins: ``10 seconds``, ``0 seconds`` for at once; ``available-now``: until
    everything is written that was there at the start."""
    master: str = "local[*]"
    """Spark's master: ``local[*]`` is this machine, ``spark://HOST:PORT``, ``yarn`` or
    ``k8s://...`` a cluster."""
    name: str = "kip848 pipeline"
    """What Spark calls it."""
    packages: tuple[str, ...] = ()
    """Maven packages that Spark fetches, such as ``org.apache.spark:spark-avro_2.13:4.3.0``."""
    py_files: tuple[str, ...] = ()
    """Python files (``.py``, ``.zip``) that executors get, such as one with the functions that a
    transform calls for each row."""
    ship: bool = True
    """On a cluster executors get this package, in pure Python, and take it before one that they
    have; what it needs (``aiokafka`` and so on) is not in it. ``false`` where all machines have it
    installed: there it has its C extension."""
    archives: tuple[str, ...] = ()
    """Archives (``.zip``, ``.tar.gz``) that Spark unpacks where executors run, such as an
    environment of Python: ``environment.tar.gz#environment`` names the directory."""
    spark: Options = Field(default_factory=dict[str, str])
    """Settings of Spark."""
    log_level: Literal["off", "error", "warn", "info"] = "off"
    """What Spark itself writes to the standard error. What ends the pipeline is told anyway."""


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
                "decode.on_error = 'dead-letter' is for sink.format = 'parquet'; with "
                f"{self.sink.format!r} it is 'fail' or 'drop'"
            )
        paths = [self.sink.path, self.run.checkpoint, self.decode.dead_letter]
        said = [path.rstrip("/") for path in paths if path is not None]
        if len(set(said)) < len(said):
            raise ValueError("sink.path, run.checkpoint and decode.dead_letter must differ")
        return self
