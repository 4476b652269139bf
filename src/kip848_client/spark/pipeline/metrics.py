"""A pipeline's metrics for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kip848_client.observe.metrics_page import Family, as_text
from kip848_client.spark.pipeline.core._status import PipelineStatus

__all__ = ["metrics_text"]

_METRICS: Final = (
    ("batches", "counter", "Batches that are ended."),
    ("records", "counter", "Records that were read in batches that are ended."),
    ("rows", "counter", "Rows that were written."),
    ("bad", "counter", "Records that could not be decoded, and were left out or buried."),
    ("lag", "gauge", "Offsets that are in no batch yet, of the partitions that it has."),
    ("partitions", "gauge", "Partitions that it has."),
    ("leaving", "gauge", "Partitions that others shall have when their batch is ended."),
    ("last_batch_ms", "gauge", "How long the last batch took, in milliseconds."),
)


def metrics_text(status: PipelineStatus) -> str:
    """In Prometheus' text format, with the suffix ``_total`` for counters. Unknown values are left
    out."""
    return as_text(_families(status))


def _families(status: PipelineStatus) -> Iterator[Family]:
    said = status.to_json()
    for name, kind, text in _METRICS:
        if said[name] is not None:
            full = f"kip848_pipeline_{name}" + ("_total" if kind == "counter" else "")
            yield Family(full, kind, [({}, said[name])], text)
    is_up = status.state in ("starting", "running", "stopping")
    yield Family("kip848_pipeline_up", "gauge", [({}, int(is_up))], "Whether it is at work.")
