"""Reads Spark's checkpoint, and locks it for one driver."""

from __future__ import annotations

import fcntl
import json
import os
import uuid
from pathlib import Path
from typing import IO, Any, cast

from kip848_client.spark.pipeline._errors import OutputRefused
from kip848_client.spark.pipeline._files import Files
from kip848_client.spark.pipeline.core._guard import Checkpoint
from kip848_client.spark.source.core._manifest import Manifest

__all__ = ["DriverLock", "begun", "look_into", "planned"]


def look_into(files: Files, path: str) -> Checkpoint:
    """The state of a checkpoint. Raises ``OutputRefused`` for an incomplete one."""
    planned = _last(files.names(f"{path}/offsets"))
    done = _last(files.names(f"{path}/commits"))
    text = files.read(f"{path}/metadata")
    if text is None:
        if planned is not None:
            raise OutputRefused(
                f"the checkpoint {path} is incomplete: it has batches, but no file 'metadata'. "
                "Restore it, or start over with a new checkpoint (run.checkpoint) and a new "
                "directory (sink.path)"
            )
        return Checkpoint(path, None, None, None)
    try:
        query_id = str(cast("dict[str, Any]", json.loads(text))["id"])
    except (ValueError, KeyError, TypeError) as err:
        raise OutputRefused(f"the checkpoint {path}: its file 'metadata' has no id: {err}") from err
    return Checkpoint(path, query_id, planned, done)


def begun(files: Files, found: Checkpoint) -> Checkpoint:
    """A checkpoint with an id. A new one gets an id here, as Spark would do when its query starts:
    the output is bound to it before the first row is written.

    If no batch was started, incomplete files of Spark's are removed (after a full disk): Spark
    starts only with empty directories."""
    if found.planned is None:
        for folder in (f"{found.path}/offsets", f"{found.path}/commits"):
            for name in files.names(folder):
                if name.startswith("."):
                    files.remove(f"{folder}/{name}")
    if found.query_id is not None:
        return found
    query_id = str(uuid.uuid4())
    files.write(f"{found.path}/metadata", json.dumps({"id": query_id}))
    return Checkpoint(found.path, query_id, None, None)


def planned(files: Files, path: str, number: int) -> Manifest:
    """The source's plan of a batch that Spark has started. Raises ``OutputRefused``."""
    file = f"{path.rstrip('/')}/offsets/{number}"
    lines = (files.read(file) or "").strip().splitlines()
    try:
        return Manifest.of(json.loads(lines[-1]))
    except (IndexError, ValueError) as err:
        raise OutputRefused(
            f"{file} has no valid plan of the source: {err}; was it changed manually?"
        ) from err


def _last(names: list[str]) -> int | None:
    return max((int(name) for name in names if name.isdecimal()), default=None)


class DriverLock:
    """Lets one driver run on this machine, and refuses others at once. It ends with the process.

    Drivers on different machines are detected by ``BatchOutput.take_over``.
    """

    def __init__(self, checkpoint: Path) -> None:
        self._path = checkpoint / ".driver.lock"
        self._file: IO[str] | None = None

    def take(self) -> None:
        """Take the lock. Raises ``OutputRefused`` if another driver runs."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        file = self._path.open("a+", encoding="utf-8")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as err:
            file.seek(0)
            who = file.read().strip() or "unknown"
            file.close()
            raise OutputRefused(
                f"another driver (process {who}) runs with the checkpoint {self._path.parent}: "
                "stop it first, or use another checkpoint (run.checkpoint) and output (sink.path)"
            ) from err
        file.seek(0)
        file.truncate()
        file.write(str(os.getpid()))
        file.flush()
        self._file = file

    def release(self) -> None:
        """Release the lock."""
        if self._file is not None:
            self._file.close()
            self._file = None
