"""``Pipeline``: from topics to files, tables or a topic, by settings."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import NullType

from kip848_client.errors import ConfigError
from kip848_client.spark._data_source import Kip848DataSource
from kip848_client.spark.pipeline._checkpoint import DriverLock, planned
from kip848_client.spark.pipeline._config import TOPIC, PipelineConfig
from kip848_client.spark.pipeline._decode import Decoding
from kip848_client.spark.pipeline._files import HadoopFiles
from kip848_client.spark.pipeline._outputs import Outputs, prepare
from kip848_client.spark.pipeline._running import Running
from kip848_client.spark.pipeline._session import new_session, ship_to_executors
from kip848_client.spark.pipeline._sink import BatchSink, rows_of
from kip848_client.spark.pipeline._transform import Transform, transform_of
from kip848_client.spark.pipeline._until import until_options
from kip848_client.spark.pipeline._writing import check_for_time
from kip848_client.spark.pipeline.config import config_from, load_config
from kip848_client.spark.pipeline.core._causes import cause_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["Pipeline"]

_SET_ELSEWHERE: Final = {
    "control": "the pipeline sets it",
    "subscribe": "use source.topics",
    "subscribepattern": "use source.topic_pattern",
    "assign": "use source.topics",
    "ownership": "use source.ownership",
    "startingoffsets": "use source.starting",
    "endingoffsets": "use run.until",
    "endingtimestamp": "use run.until",
    "endingoffsetsbytimestamp": "use run.until",
    "maxoffsetspertrigger": "use source.max_records_per_batch",
    "kafka.bootstrap.servers": "use source.bootstrap_servers",
    "kafka.group.id": "use source.group",
}


class Pipeline:
    """Read topics, decode and transform the records, and write them.

    ::

        pipeline = Pipeline.from_toml("pipeline.toml")
        with pipeline.start() as running:
            running.wait()

    Args:
        config: A ``PipelineConfig``, or a mapping with the same names.
        transform: Takes and returns a DataFrame, in place of the transform in the settings.
        spark: The session to run in. Default: the active one; without one, ``start`` starts Spark
            and the pipeline ends it.

    Raises:
        ConfigError: A setting is unknown or wrong.
    """

    def __init__(
        self,
        config: PipelineConfig | Mapping[str, Any],
        *,
        transform: Transform | None = None,
        spark: SparkSession | None = None,
    ) -> None:
        self.config = config if isinstance(config, PipelineConfig) else config_from(config)
        for name in self.config.source.options:
            why = _SET_ELSEWHERE.get(name.lower())
            if why is not None:
                raise ConfigError(f"source.options.{name} cannot be set: {why}")
        self._transform = transform_of(self.config.transform, transform)
        self._decoding = Decoding(self.config.decode, ",".join(self.config.source.topics))
        self._spark = spark

    @classmethod
    def from_toml(cls, file: str | Path) -> Self:
        """Create a pipeline from a file of settings.

        Args:
            file: A path to TOML with the names of ``PipelineConfig``.

        Returns:
            The pipeline, not started.

        Raises:
            ConfigError: The file cannot be read, or a setting is wrong; the text has the line.
        """
        return cls(load_config(file))

    def start(self) -> Running:
        """Start, or resume at the checkpoint.

        Returns:
            The running pipeline. Leave its ``with`` block, or call ``stop``, to end it.

        Raises:
            ConfigError: Something is wrong before the first batch. ``OutputRefused``: the output
                and the checkpoint do not belong together.
            PipelineFailed: The transform raised.
        """
        with ExitStack() as stack:
            spark = self._spark or SparkSession.getActiveSession()
            if spark is None:
                spark = new_session(self.config.run)
                stack.callback(spark.stop)
            running = self._begin(spark, stack)
            running.ends_with(stack.pop_all())
            return running

    def _begin(self, spark: SparkSession, stack: ExitStack) -> Running:
        files = HadoopFiles.of(spark)
        self._decoding.prepare()
        checkpoint = self.config.run.checkpoint
        try:
            if files.is_local(checkpoint):
                lock = DriverLock(files.local(checkpoint))
                lock.take()
                stack.callback(lock.release)
            outputs = prepare(files, self.config)
        except OSError as err:
            raise ConfigError(
                f"the checkpoint or the output cannot be written: {cause_of(str(err))}"
            ) from err
        home = stack.enter_context(tempfile.TemporaryDirectory(prefix="kip848-"))
        control = f"{home}/control"
        options = self._source_options()
        if self.config.source.engine == "jvm":
            frame = _by_spark(spark, options)
            running = Running(self.config, spark, None, options)
        else:
            ours = {"control": control}
            ours["ownership"] = "shared" if self.config.source.is_shared else "exclusive"
            # a data source that is registered later can import them
            ship_to_executors(spark, self.config.run)
            spark.dataSource.register(Kip848DataSource)
            frame = spark.readStream.format("kip848").options(**options, **ours).load()
            running = Running(self.config, spark, control, options)
        self._try_out(spark, frame)
        try:
            running.follow(self._query(frame, outputs, running))
        except PySparkException as err:
            raise ConfigError(f"the query cannot start: {cause_of(str(err))}") from err
        return running

    def _source_options(self) -> dict[str, str]:
        """The options that both engines have."""
        source = self.config.source
        said = {
            **source.options,
            "kafka.bootstrap.servers": source.bootstrap_servers,
            "startingOffsets": source.starting,
        }
        if source.topic_pattern is not None:
            said["subscribePattern"] = source.topic_pattern
        else:
            said["subscribe"] = ",".join(source.topics)
        if source.group is not None:
            said["kafka.group.id"] = source.group
        if source.max_records_per_batch:
            said["maxOffsetsPerTrigger"] = str(source.max_records_per_batch)
        if self.config.run.until is not None:
            said |= until_options(self.config.run.until)
        return said

    def _try_out(self, spark: SparkSession, frame: DataFrame) -> None:
        """Decode and transform an empty frame, so that errors are raised now."""
        nothing = spark.createDataFrame([], frame.schema)
        try:
            found = rows_of(nothing, self.config, self._decoding, self._transform)
            names = [each.name.lower() for each in found.schema.fields]
            empty = [e.name for e in found.schema.fields if isinstance(e.dataType, NullType)]
        except PySparkException as err:
            raise ConfigError(f"records cannot be turned into rows: {cause_of(str(err))}") from err
        twice = sorted({name for name in names if names.count(name) > 1})
        missing = [each for each in self.config.sink.partition_by if each.lower() not in names]
        if twice:
            raise ConfigError(f"the transform returns two columns {twice[0]!r}: rename one")
        if empty:
            raise ConfigError(f"the transform returns column {empty[0]!r} without a type: cast it")
        unit = self.config.sink.partition_by_time
        if unit is not None:
            check_for_time(found.schema, unit)
        if missing:
            raise ConfigError(
                f"sink.partition_by has {missing[0]!r}, but the rows have {', '.join(names)}"
            )

    def _query(self, frame: DataFrame, outputs: Outputs, running: Running) -> StreamingQuery:
        sink, run = self.config.sink, self.config.run
        if outputs.rows is not None:
            running.sink = BatchSink(
                self.config,
                self._decoding,
                self._transform,
                outputs.rows,
                outputs.dead,
                running.in_hand,
                partial(planned, outputs.files, run.checkpoint),
            )
            writer = frame.writeStream.foreachBatch(running.sink)
        else:
            rows = rows_of(frame, self.config, self._decoding, self._transform)
            writer = rows.writeStream.format(sink.format).options(**self._sink_options())
            if sink.partition_by:
                writer = writer.partitionBy(*sink.partition_by)
        writer = writer.option("checkpointLocation", run.checkpoint).queryName(run.name)
        if run.is_bounded:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=run.trigger)
        if sink.table is not None:
            return writer.toTable(sink.table)
        return writer.start(sink.path if outputs.rows is None else None)

    def _sink_options(self) -> dict[str, str]:
        sink = self.config.sink
        if sink.format != TOPIC:
            return sink.options
        brokers = sink.bootstrap_servers or self.config.source.bootstrap_servers
        said = {"kafka.bootstrap.servers": brokers, **sink.options}
        return said if sink.topic is None else {**said, "topic": sink.topic}


def _by_spark(spark: SparkSession, options: Mapping[str, str]) -> DataFrame:
    said = dict(options)
    if "subscribePattern" in said:  # Spark's own source would also match part of a name
        said["subscribePattern"] = f"^(?:{said['subscribePattern']})$"
    try:
        return spark.readStream.format("kafka").options(**said).load()
    except PySparkException as err:
        package = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{spark.version}"
        raise ConfigError(
            f"source.engine = 'jvm' is not available: {cause_of(str(err))} Spark's own source is "
            f"in the package {package}: add it to run.packages"
        ) from err
