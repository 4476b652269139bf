"""Which output belongs to which checkpoint: a new checkpoint would write an old output twice, and a
checkpoint from a backup would leave batches in it that it knows nothing of.

Pure: what was found comes in, a refusal goes out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, cast

from kip848_client.spark.pipeline._errors import OutputRefused

__all__ = ["BINDING", "Binding", "Checkpoint", "batch_name", "batch_number", "check", "visible"]

BINDING: Final = "_kip848.json"
"""The file in an output directory that says to which checkpoint it belongs."""
_BATCH: Final = re.compile(r"batch_id=(\d+)")


@dataclass(frozen=True, slots=True)
class Binding:
    """What an output directory belongs to."""

    checkpoint: str
    """The id that Spark gave the query, which is in its checkpoint."""
    group: str | None
    ownership: str
    topics: dict[str, str]
    """Their ids, as far as they were known."""
    engine: str = "python"

    def to_json(self) -> str:
        """As it is in the file."""
        return json.dumps(asdict(self), sort_keys=True, indent=2) + "\n"

    @classmethod
    def of(cls, text: str, path: str) -> Binding:
        """From the file. Raises ``OutputRefused`` for what is none."""
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
            )
        except (ValueError, KeyError, TypeError, AttributeError) as err:
            raise OutputRefused(
                f"{path} cannot be read: it should say to which checkpoint the output belongs. "
                "Restore it, or write to a new directory (sink.path)"
            ) from err


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a checkpoint directory has."""

    path: str
    query_id: str | None
    """``None``: there is no checkpoint yet."""
    planned: int | None
    """The last batch that was begun."""
    done: int | None
    """The last batch that was ended."""


def batch_name(number: int) -> str:
    """The directory of a batch; readers that know such names get a column ``batch_id``."""
    return f"batch_id={number}"


def batch_number(name: str) -> int | None:
    """Which batch a directory is of; ``None`` for another."""
    found = _BATCH.fullmatch(name)
    return None if found is None else int(found[1])


def visible(names: Sequence[str]) -> list[str]:
    """What readers see of a directory."""
    return [name for name in names if not name.startswith(("_", "."))]


def check(
    output: str,
    names: Sequence[str],
    binding: Binding | None,
    checkpoint: Checkpoint,
    wanted: Binding,
) -> None:
    """Raises ``OutputRefused`` unless a pipeline may go on with this checkpoint in this output.

    ``names`` is what the output directory has, ``wanted`` what it would be bound to."""
    if binding is None:
        _check_unbound(output, names, checkpoint)
        return
    if checkpoint.query_id is None or checkpoint.query_id != binding.checkpoint:
        what = "is new" if checkpoint.query_id is None else f"has the id {checkpoint.query_id}"
        raise OutputRefused(
            f"the output {output} was written with the checkpoint of id {binding.checkpoint}, and "
            f"the checkpoint {checkpoint.path} {what}: what is in the output would be written "
            "again. Put the old checkpoint back (run.checkpoint), or write to a new directory "
            "(sink.path); to begin anew, remove both"
        )
    for name, was, now in (
        ("source.group", binding.group, wanted.group),
        ("source.engine", binding.engine, wanted.engine),
        ("source.ownership", binding.ownership, wanted.ownership),
    ):
        if was != now:
            raise OutputRefused(
                f"the output {output} was written with {name} = {was!r}, and now it is {now!r}: "
                "where to go on would be elsewhere. Set it back, or begin anew with a new "
                "checkpoint (run.checkpoint) and a new directory (sink.path)"
            )
    last = max((number for each in names if (number := batch_number(each)) is not None), default=-1)
    planned = -1 if checkpoint.planned is None else checkpoint.planned
    if last > planned:
        raise OutputRefused(
            f"the output {output} has batch {last}, and the checkpoint {checkpoint.path} has begun "
            f"none after {planned}: is it from a backup? Batches that it does not know would stay "
            f"and be written again. Restore a checkpoint that knows batch {last}, or begin anew "
            "with a new checkpoint (run.checkpoint) and a new directory (sink.path)"
        )


def _check_unbound(output: str, names: Sequence[str], checkpoint: Checkpoint) -> None:
    if "_spark_metadata" in names:
        raise OutputRefused(
            f"the output {output} was written by Spark's own file sink, which keeps books of its "
            "own. Write to a new directory (sink.path)"
        )
    found = visible(names)
    if found:
        raise OutputRefused(
            f"the output {output} has files of others, such as {found[0]!r}, and no {BINDING}. "
            "Write to a new directory (sink.path)"
        )
    if checkpoint.planned is not None and checkpoint.planned != checkpoint.done:
        raise OutputRefused(
            f"the checkpoint {checkpoint.path} has begun batch {checkpoint.planned} and not ended "
            f"it, and the output {output} is new: the batch may be in the old output. Run once "
            "more with that, stop in order, and then change it"
        )
