"""``Pipeline``: from topics to Parquet, tables or a topic, on Spark, by settings.

``_config`` has the settings, ``config`` reads them; ``_pipeline`` starts a pipeline, ``_running``
is a running one. ``core/_guard`` checks that output and checkpoint belong together, ``_sink``
handles each batch and ``_writing`` writes it: ``_batches`` has directories of batches,
``_time_output`` directories by time; ``_decode`` and ``_transform`` turn records into rows.
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
