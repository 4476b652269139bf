"""``Pipeline``: from topics to Parquet, tables or a topic, on Spark, by settings.

``_config`` has the settings, ``config`` reads them; ``_pipeline`` starts a pipeline, ``_running``
is a running one. ``core/_guard`` checks that output and checkpoint belong together, ``_batches``
writes directories of batches, ``_sink`` handles each batch; ``_decode`` and ``_transform`` turn
records into rows.
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
