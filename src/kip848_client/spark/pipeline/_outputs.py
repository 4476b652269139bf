"""Prepares the outputs before the first batch: output and checkpoint belong together, and only this
driver writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kip848_client.spark.pipeline._batches import BatchOutput
from kip848_client.spark.pipeline._checkpoint import begun, look_into
from kip848_client.spark.pipeline._config import BATCH_DIRECTORIES, PipelineConfig
from kip848_client.spark.pipeline._files import Files
from kip848_client.spark.pipeline._time_output import TimeOutput
from kip848_client.spark.pipeline._writing import DirectoryWriter, RowWriter, TimeWriter
from kip848_client.spark.pipeline.core._guard import (
    BATCHES,
    BINDING,
    Binding,
    Checkpoint,
    check,
    visible,
)

__all__ = ["Outputs", "prepare"]

_TRIED: Final = ".kip848-write-test"


@dataclass(frozen=True, slots=True)
class Outputs:
    """The directories of a pipeline, bound to its checkpoint and taken over."""

    files: Files
    """The file system."""
    query_id: str
    rows: RowWriter | None
    """``None`` if Spark itself writes the output."""
    dead: RowWriter | None


def prepare(files: Files, config: PipelineConfig) -> Outputs:
    """Check the outputs, bind them to the checkpoint, and take them over. Raises ``OutputRefused``,
    and ``OSError`` for a directory that cannot be read or written."""
    path = config.run.checkpoint.rstrip("/")
    found = look_into(files, path)
    wanted = _binding(config, found.query_id or "")
    ours = [config.sink.path, config.decode.dead_letter]
    paths = [each.rstrip("/") for each in ours if each is not None]
    has_batches = config.sink.format == BATCH_DIRECTORIES
    for each in paths:
        _check(files, each, found, wanted, is_ours=has_batches)
    checkpoint = begun(files, found)
    bound = _binding(config, checkpoint.query_id or "")
    for each in paths:
        _try_to_write(files, each)
        if files.read(f"{each}/{BINDING}") is None or bound.layout != BATCHES:
            files.write(f"{each}/{BINDING}", bound.to_json())
    if not has_batches:
        return Outputs(files, bound.checkpoint, None, None)
    unit = config.sink.partition_by_time
    if unit is not None:
        writers = [TimeWriter(TimeOutput(files, each), unit) for each in paths]
        writers[0].settings = config.sink
        for writer in writers:
            writer.output.take_over()
        return Outputs(files, bound.checkpoint, writers[0], _second(writers))
    directories = [DirectoryWriter(BatchOutput(files, each)) for each in paths]
    directories[0].settings = config.sink
    for directory in directories:
        directory.output.take_over()
    return Outputs(files, bound.checkpoint, directories[0], _second(directories))


def _second(writers: Sequence[RowWriter]) -> RowWriter | None:
    """The one for dead letters, if there is one."""
    return writers[1] if len(writers) > 1 else None


def _binding(config: PipelineConfig, query_id: str) -> Binding:
    source = config.source
    ownership = "shared" if source.is_shared else "exclusive"
    layout = config.sink.partition_by_time or BATCHES
    return Binding(query_id, source.group, ownership, {}, source.engine, layout)


def _check(
    files: Files, path: str, checkpoint: Checkpoint, wanted: Binding, *, is_ours: bool
) -> None:
    names = files.names(path)
    text = files.read(f"{path}/{BINDING}")
    if text is None and not is_ours and visible(names):
        return  # a table that existed before
    binding = None if text is None else Binding.of(text, f"{path}/{BINDING}")
    check(path, names, binding, checkpoint, wanted)


def _try_to_write(files: Files, path: str) -> None:
    """Fail before Spark reads anything if the directory cannot be written."""
    files.write(f"{path}/{_TRIED}", "")
    files.remove(f"{path}/{_TRIED}")
