"""How many tasks read a batch where nobody says so."""

from __future__ import annotations

import os

from kip848_client.spark._options import SourceOptions

__all__ = ["tasks_of"]


def tasks_of(options: SourceOptions, partitions: int) -> int:
    """The option ``tasks``, else as many as this machine has cores: the source cannot ask Spark for
    its slots. A task costs some 40 ms, so that more tasks than slots only cost time."""
    return options.tasks or max(1, min(partitions, len(os.sched_getaffinity(0))))
