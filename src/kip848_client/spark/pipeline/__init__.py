"""``Pipeline``: from topics to Parquet, tables or a topic, on Spark, by settings.

``_config`` has the settings, ``config`` reads them; ``_pipeline`` begins, ``_running`` is what has
begun. ``_guard`` says which output belongs to which checkpoint, ``_batches`` how a batch gets its
directory, ``_sink`` what is done with each batch; ``_decode`` and ``_transform`` are the way from
records to rows.
"""

from __future__ import annotations

from kip848_client.spark.pipeline._config import PipelineConfig
from kip848_client.spark.pipeline._errors import DriverReplaced, OutputRefused, PipelineFailed
from kip848_client.spark.pipeline._pipeline import Pipeline
from kip848_client.spark.pipeline._running import Running
from kip848_client.spark.pipeline.core._status import PipelineStatus

__all__ = [
    "DriverReplaced",
    "OutputRefused",
    "Pipeline",
    "PipelineConfig",
    "PipelineFailed",
    "PipelineStatus",
    "Running",
]
