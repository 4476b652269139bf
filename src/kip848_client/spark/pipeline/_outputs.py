"""Prepares the outputs before the first batch: output and checkpoint belong together, and only this
driver writes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from kip848_client.spark.pipeline._batches import BatchOutput, written_ranges
from kip848_client.spark.pipeline._checkpoint import begun, look_into
from kip848_client.spark.pipeline._config import BATCH_DIRECTORIES, PipelineConfig
from kip848_client.spark.pipeline._files import Files
from kip848_client.spark.pipeline.core._guard import BINDING, Binding, Checkpoint, check, visible

__all__ = ["Outputs", "prepare"]

_TRIED: Final = ".kip848-write-test"


@dataclass(frozen=True, slots=True)
class Outputs:
    """The directories of a pipeline, bound to its checkpoint and taken over."""

    files: Files
    """The file system."""
    query_id: str
    batches: BatchOutput | None
    """``None`` if Spark itself writes the output."""
    dead: BatchOutput | None
    written: str | None
    """The value of the source's option ``written``: what the output already has."""

    @property
    def written_option(self) -> dict[str, str]:
        """The option ``written``, if there is one."""
        return {} if self.written is None else {"written": self.written}


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
        if files.read(f"{each}/{BINDING}") is None:
            files.write(f"{each}/{BINDING}", bound.to_json())
    if not has_batches:
        return Outputs(files, bound.checkpoint, None, None, None)
    batches, *rest = [BatchOutput(files, each) for each in paths]
    for output in (batches, *rest):
        output.take_over()
    written = None
    if config.source.is_shared:
        notes = batches.last_notes(checkpoint.done)
        written = json.dumps(written_ranges(notes) | {"query": bound.checkpoint})
    return Outputs(files, bound.checkpoint, batches, rest[0] if rest else None, written)


def _binding(config: PipelineConfig, query_id: str) -> Binding:
    source = config.source
    ownership = "shared" if source.is_shared else "exclusive"
    return Binding(query_id, source.group, ownership, {}, source.engine)


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
