"""Which ownership wrote a checkpoint, and whether a query may continue with it. Pure.

The two kinds of ownership keep different things in a checkpoint: ``exclusive`` has a position for
each partition, ``shared`` has the last batch, and its group has the positions. A query that
confuses the two rereads partitions from their first record.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from kip848_client.core.partition_names import shown
from kip848_client.core.types import TopicPartition
from kip848_client.errors import ConfigError
from kip848_client.spark.source.core._manifest import Manifest

if TYPE_CHECKING:
    from kip848_client.spark.source.core._options import SourceOptions

__all__ = ["check_ownership", "check_positions"]

_NEW: Final = "with a new checkpointLocation the query starts at its group's offsets"


def check_ownership(kept: Manifest, options: SourceOptions) -> None:
    """Raise ``ConfigError`` if the other ownership wrote the checkpoint, or if an older version of
    this package did and the options do not set ``ownership``."""
    mine = options.ownership
    if kept.ownership is not None and kept.ownership != mine:
        default = "" if options.sets_ownership else ", the default"
        raise ConfigError(
            f"the checkpoint was written with ownership={kept.ownership}, and this query runs with "
            f"ownership={mine}{default}, so it would not resume where the last run stopped. Set "
            f"ownership={kept.ownership} to continue; {_NEW}"
        )
    if kept.ownership is None and options.group_id is not None and not options.sets_ownership:
        raise ConfigError(
            "the checkpoint was written by an older version, in which ownership=shared was the "
            "default for a stream with kafka.group.id. Now the default is ownership=exclusive. "
            "Set ownership=shared to continue as before, or ownership=exclusive if the query ran "
            "with that"
        )


def check_positions(
    kept: Manifest, options: SourceOptions, partitions: Iterable[TopicPartition]
) -> None:
    """For a query with ``ownership=exclusive`` and a checkpoint of an older version: raise
    ``ConfigError`` if the checkpoint lacks one of these partitions. It may have been written with
    ``ownership=shared``, which keeps only the partitions of one batch."""
    if kept.ownership is not None or options.group_id is None:
        return
    missing = sorted(set(partitions).difference(kept.ranges))
    if missing:
        raise ConfigError(
            f"the checkpoint was written by an older version and has no position for "
            f"{shown(missing[0])}: ownership=exclusive would read it from its first record. If the "
            f"query ran with ownership=shared, set that to continue; {_NEW}"
        )
