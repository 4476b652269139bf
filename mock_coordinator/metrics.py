"""What brokers measure, as values and as the text that Prometheus reads.

The names in the text are those that Prometheus' JMX exporter makes of Kafka's by default, so that a
dashboard for Kafka's group coordinator shows this one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from mock_coordinator.core.groups import CoordinatorMetric

__all__ = ["as_text"]

_PREFIX: Final = "kafka_server_group_coordinator_metrics_"


def as_text(metrics: Iterable[CoordinatorMetric]) -> str:
    """In Prometheus' text format, version 0.0.4. Lines of one name must follow each other."""
    lines: list[str] = []
    before = ""
    for name, tags, value in metrics:
        full = _PREFIX + name.replace("-", "_")
        if full != before:
            kind = "counter" if name.endswith("-count") and not tags else "gauge"
            lines.append(f"# TYPE {full} {kind}\n")
            before = full
        labels = ",".join(f'{tag}="{text}"' for tag, text in tags.items())
        shown = "NaN" if math.isnan(value) else f"{value:g}"
        lines.append(f"{full}{{{labels}}} {shown}\n" if labels else f"{full} {shown}\n")
    return "".join(lines)
