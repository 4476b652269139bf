"""The few things that are done to files beside Spark's own writing: on this machine, or by Hadoop's
file systems where Spark's paths lead elsewhere."""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path
from typing import Any, Protocol

from kip848_client.errors import ConfigError

__all__ = ["Files", "HadoopFiles", "LocalFiles", "local_path"]


class Files(Protocol):
    """Paths are texts, as Spark takes them. All raise ``OSError``."""

    def read(self, path: str) -> str | None:
        """A small file; ``None`` when there is none."""
        ...

    def write(self, path: str, text: str) -> None:
        """A small file, whole or not at all; what was there is replaced."""
        ...

    def names(self, path: str) -> list[str]:
        """What is in a directory, sorted; nothing when there is none."""
        ...

    def move(self, path: str, target: str) -> None:
        """Rename a directory. Raises ``FileExistsError`` when the target exists."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file, or a directory with all that is in it, if there is one."""
        ...


def local_path(path: str) -> Path | None:
    """The path on this machine, if it says by itself that it is there (``file:/...``)."""
    for scheme in ("file://", "file:"):
        if path.startswith(scheme):
            return Path(path.removeprefix(scheme))
    return None


class LocalFiles:
    """This machine's."""

    def read(self, path: str) -> str | None:
        """A small file; ``None`` when there is none."""
        try:
            return _local(path).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def write(self, path: str, text: str) -> None:
        """A small file, whole or not at all."""
        target = _local(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
        try:
            with draft.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(target)
        except OSError:
            draft.unlink(missing_ok=True)
            raise

    def names(self, path: str) -> list[str]:
        """What is in a directory, sorted."""
        try:
            return sorted(each.name for each in _local(path).iterdir())
        except FileNotFoundError:
            return []

    def move(self, path: str, target: str) -> None:
        """Rename a directory."""
        if _local(target).exists():
            raise FileExistsError(target)
        _local(path).rename(_local(target))

    def remove(self, path: str) -> None:
        """Remove what is there."""
        found = _local(path)
        if found.is_dir() and not found.is_symlink():
            shutil.rmtree(found)
        else:
            found.unlink(missing_ok=True)


def _local(path: str) -> Path:
    return local_path(path) or Path(path)


class HadoopFiles:
    """Those of Hadoop's file systems, in Spark's JVM."""

    def __init__(self, jvm: Any, configuration: Any) -> None:
        self._hadoop = jvm.org.apache.hadoop.fs
        self._bytes = jvm.org.apache.commons.io.IOUtils
        self._configuration = configuration

    @classmethod
    def of(cls, spark: Any) -> HadoopFiles:
        """With the settings of a session. Raises ``ConfigError`` for one of Spark Connect."""
        try:
            context = spark.sparkContext
        except Exception as err:
            raise ConfigError(
                "a pipeline needs a session of its own, not one of Spark Connect, for it reads and "
                "writes files through Spark's JVM: run it in another process (kip848 pipeline run) "
                "with the cluster as run.master, or use format('kip848') in this session"
            ) from err
        return cls(context._jvm, context._jsc.hadoopConfiguration())  # noqa: SLF001 - no other way

    def is_local(self, path: str) -> bool:
        """Whether a path leads to this machine's files."""
        return str(self._system(path).getUri().getScheme()) == "file"

    def local(self, path: str) -> Path:
        """Where that is on this machine."""
        return Path(str(self._system(path).makeQualified(self._path(path)).toUri().getPath()))

    def _path(self, path: str) -> Any:
        return self._hadoop.Path(path)

    def _system(self, path: str) -> Any:
        return self._path(path).getFileSystem(self._configuration)

    def read(self, path: str) -> str | None:
        """A small file; ``None`` when there is none."""
        with _as_os_error(path):
            system = self._system(path)
            if not system.exists(self._path(path)):
                return None
            stream = system.open(self._path(path))
            try:
                return str(self._bytes.toString(stream, "UTF-8"))
            finally:
                stream.close()

    def write(self, path: str, text: str) -> None:
        """A small file, whole or not there: it is written beside and renamed."""
        folder, _, name = path.rpartition("/")
        draft = f"{folder}/.{name}.{secrets.token_hex(4)}"
        with _as_os_error(path):
            system = self._system(path)
            stream = system.create(self._path(draft), True)
            try:
                stream.write(bytearray(text.encode()))
            finally:
                stream.close()
            system.delete(self._path(path), False)
            if not system.rename(self._path(draft), self._path(path)):
                raise OSError(f"{draft} could not be renamed to {path}")

    def names(self, path: str) -> list[str]:
        """What is in a directory, sorted."""
        with _as_os_error(path):
            system = self._system(path)
            if not system.exists(self._path(path)):
                return []
            return sorted(
                str(each.getPath().getName()) for each in system.listStatus(self._path(path))
            )

    def move(self, path: str, target: str) -> None:
        """Rename a directory."""
        with _as_os_error(path):
            system = self._system(path)
            if system.exists(self._path(target)):
                raise FileExistsError(target)
            if not system.rename(self._path(path), self._path(target)):
                raise OSError(f"{path} could not be renamed to {target}")

    def remove(self, path: str) -> None:
        """Remove what is there."""
        with _as_os_error(path):
            self._system(path).delete(self._path(path), True)


class _as_os_error:  # noqa: N801 - reads as a word
    """What the JVM raises as ``OSError``, so that callers know one kind."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, err: BaseException | None, _trace: Any) -> None:
        if err is not None and not isinstance(err, OSError) and hasattr(err, "java_exception"):
            told = str(getattr(err, "java_exception", err))
            raise OSError(f"{self._path}: {told}") from err
