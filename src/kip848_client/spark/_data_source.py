"""``Kip848DataSource``: the format ``kip848``.

Spark imports this module in a new process for each ``load()``, each plan and each worker. So this
module, the readers and the writers import everything else only when they need it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
)
from pyspark.sql.types import StructType

from kip848_client.errors import ConfigError
from kip848_client.spark._schema import check_schema, schema_of

if TYPE_CHECKING:
    from kip848_client.spark.sink._options import SinkOptions
    from kip848_client.spark.source.core._options import SourceOptions

__all__ = ["Kip848DataSource"]


class Kip848DataSource(DataSource):
    """Reads and writes Kafka topics as tables and streams, with the columns and options of Spark's
    own Kafka source and sink.

    It does not connect: Spark makes it in several processes.
    """

    @classmethod
    def name(cls) -> str:
        """The name for ``format(...)``."""
        return "kip848"

    def schema(self) -> StructType:
        """The columns; ``headers`` with the option ``includeHeaders``."""
        with_headers = self.options.get("includeHeaders", "false").lower() == "true"
        return schema_of(with_headers=with_headers)

    def reader(self, schema: StructType) -> DataSourceReader:
        """For ``spark.read``."""
        from kip848_client.spark.source._batch import BatchReader

        return BatchReader(self._checked(schema, is_stream=False))

    def streamReader(  # noqa: N802  # Spark's name
        self, schema: StructType
    ) -> DataSourceStreamReader:
        """For ``spark.readStream``."""
        from kip848_client.spark.source._stream import StreamReader

        return StreamReader(self._checked(schema, is_stream=True))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """For ``df.write``, with ``mode("append")``."""
        from kip848_client.spark.sink._writers import BatchWriter

        if overwrite:
            raise ConfigError("a topic cannot be overwritten; use mode('append')")
        return BatchWriter(self._to_write(schema))

    def streamWriter(  # noqa: N802  # Spark's name
        self, schema: StructType, overwrite: bool
    ) -> DataSourceStreamArrowWriter:
        """For ``df.writeStream``. ``overwrite`` means output mode ``complete``; its rows are
        appended, as by Spark's own sink."""
        from kip848_client.spark.sink._writers import StreamWriter

        del overwrite
        return StreamWriter(self._to_write(schema))

    def _to_write(self, schema: StructType) -> SinkOptions:
        from kip848_client.spark.sink._options import sink_options
        from kip848_client.spark.sink._rows import check_columns

        options = sink_options(dict(self.options))
        _warn_once(options.without_effect)
        check_columns(schema, options.topic)
        return options

    def _checked(self, schema: StructType, *, is_stream: bool) -> SourceOptions:
        from kip848_client.spark.source.core._options import source_options

        options = source_options(dict(self.options), is_stream=is_stream)
        _warn_once(options.without_effect)
        check_schema(schema, with_headers=options.with_headers)
        return options


_warned: set[frozenset[str]] = set()


def _warn_once(without_effect: Mapping[str, str]) -> None:
    """Log these properties of Kafka and why each has no effect, once in this process."""
    names = frozenset(without_effect)
    if not names or names in _warned:
        return
    _warned.add(names)
    found = "; ".join(f"kafka.{name} ({why})" for name, why in sorted(without_effect.items()))
    logging.getLogger("kip848_client.spark").warning("options without effect here: %s", found)
