"""Checks that an output belongs to a checkpoint. Pure.

With a new checkpoint, an old output would be written again. With a checkpoint from a backup, the
output would keep batches that the checkpoint does not have.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, cast

from kip848_client.spark.pipeline._errors import OutputRefused

__all__ = [
    "BATCHES",
    "BINDING",
    "Binding",
    "Checkpoint",
    "batch_name",
    "batch_number",
    "check",
    "visible",
]

BINDING: Final = "_kip848.json"
"""The file in an output directory with the id of its checkpoint."""
BATCHES: Final = "batches"
"""The layout of directories of batches."""
_BATCH: Final = re.compile(r"batch_id=(\d+)")


@dataclass(frozen=True, slots=True)
class Binding:
    """The checkpoint and settings that an output directory belongs to."""

    checkpoint: str
    """The id that Spark gave the query, which is in its checkpoint."""
    group: str | None
    ownership: str
    topics: dict[str, str]
    """The ids of the topics, as far as they were known."""
    engine: str = "python"
    layout: str = BATCHES
    """``batches``, or the unit of directories by time: ``hour`` or ``day``."""

    def to_json(self) -> str:
        """The text of the file."""
        found = asdict(self)
        if self.layout == BATCHES:  # as before there were others
            del found["layout"]
        return json.dumps(found, sort_keys=True, indent=2) + "\n"

    @classmethod
    def of(cls, text: str, path: str) -> Binding:
        """Read the text of the file. Raises ``OutputRefused`` if it is invalid."""
        try:
            said = cast("dict[str, Any]", json.loads(text))
            topics = {str(name): str(found) for name, found in said["topics"].items()}
            group = said["group"]
            return cls(
                str(said["checkpoint"]),
                None if group is None else str(group),
                str(said["ownership"]),
                topics,
                str(said.get("engine", "python")),
                str(said.get("layout", BATCHES)),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as err:
            raise OutputRefused(
                f"{path}, which binds the output to a checkpoint, cannot be read. Restore it, or "
                "write to a new directory (sink.path)"
            ) from err


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The state of a checkpoint directory."""

    path: str
    query_id: str | None
    """``None`` if there is no checkpoint yet."""
    planned: int | None
    """The last batch that was started."""
    done: int | None
    """The last batch that was committed."""


def batch_name(number: int) -> str:
    """The directory of a batch; readers of Hive-style names get a column ``batch_id``."""
    return f"batch_id={number}"


def batch_number(name: str) -> int | None:
    """The number of the batch in a directory; ``None`` for other directories."""
    found = _BATCH.fullmatch(name)
    return None if found is None else int(found[1])


def visible(names: Sequence[str]) -> list[str]:
    """The names in a directory that readers of Parquet see."""
    return [name for name in names if not name.startswith(("_", "."))]


def check(
    output: str,
    names: Sequence[str],
    binding: Binding | None,
    checkpoint: Checkpoint,
    wanted: Binding,
) -> None:
    """Raise ``OutputRefused`` unless a pipeline may continue with this checkpoint and this output.

    ``names`` are the names in the output directory, ``wanted`` is its binding for this
    pipeline."""
    if binding is None:
        _check_unbound(output, names, checkpoint, wanted)
        return
    if binding.layout != wanted.layout:
        raise OutputRefused(
            f"sink.partition_by_time: the output {output} has directories by {binding.layout}, not "
            f"by {wanted.layout}. Change it back, or write to a new directory (sink.path)"
        )
    if binding.layout != BATCHES:
        return  # its index has the offsets: nothing is written twice, whatever is read again
    if checkpoint.query_id is None or checkpoint.query_id != binding.checkpoint:
        what = "is new" if checkpoint.query_id is None else f"has the id {checkpoint.query_id}"
        raise OutputRefused(
            f"the output {output} was written with checkpoint {binding.checkpoint}, but the "
            f"checkpoint {checkpoint.path} {what}: the content of the output would be written "
            "again. Restore the old checkpoint (run.checkpoint), or write to a new directory "
            "(sink.path); to start over, remove both"
        )
    for name, was, now in (
        ("source.group", binding.group, wanted.group),
        ("source.engine", binding.engine, wanted.engine),
        ("source.ownership", binding.ownership, wanted.ownership),
    ):
        if was != now:
            raise OutputRefused(
                f"{name} changed from {was!r} to {now!r} since the output {output} was written, so "
                "it cannot be resumed. Change it back, or start over with a new checkpoint "
                "(run.checkpoint) and a new directory (sink.path)"
            )
    last = max((number for each in names if (number := batch_number(each)) is not None), default=-1)
    planned = -1 if checkpoint.planned is None else checkpoint.planned
    if last > planned:
        raise OutputRefused(
            f"the output {output} has batch {last}, but the checkpoint {checkpoint.path} has none "
            f"after {planned}: is it from a backup? Later batches would stay in the output and be "
            f"written again. Restore a checkpoint that has batch {last}, or start over with a new "
            "checkpoint (run.checkpoint) and a new directory (sink.path)"
        )


def _check_unbound(
    output: str, names: Sequence[str], checkpoint: Checkpoint, wanted: Binding
) -> None:
    if "_spark_metadata" in names:
        raise OutputRefused(
            f"the output {output} was written by Spark's own file sink, which has metadata of its "
            "own. Write to a new directory (sink.path)"
        )
    found = visible(names)
    if found:
        raise OutputRefused(
            f"the output {output} has other files, such as {found[0]!r}, but no {BINDING}. "
            "Write to a new directory (sink.path)"
        )
    is_unfinished = checkpoint.planned is not None and checkpoint.planned != checkpoint.done
    if is_unfinished and wanted.layout == BATCHES:
        raise OutputRefused(
            f"the checkpoint {checkpoint.path} has an unfinished batch {checkpoint.planned}, and "
            f"the output {output} is new: the batch may be in the old output. Run once more with "
            "the old output, stop cleanly, then change it"
        )
