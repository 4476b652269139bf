"""File operations besides Spark's own: on this machine, or through Hadoop's file systems."""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path
from typing import Any, Protocol

from py4j.protocol import Py4JJavaError

from kip848_client.errors import ConfigError

__all__ = ["Files", "HadoopFiles", "LocalFiles", "local_path"]


class Files(Protocol):
    """File operations. Paths are strings, as for Spark. All methods raise ``OSError``."""

    def read(self, path: str) -> str | None:
        """Read a small file; ``None`` if it does not exist."""
        ...

    def write(self, path: str, text: str) -> None:
        """Write or replace a small file atomically."""
        ...

    def names(self, path: str) -> list[str]:
        """The names in a directory, sorted; empty if it does not exist."""
        ...

    def move(self, path: str, target: str) -> None:
        """Rename a directory. Raises ``FileExistsError`` if the target exists."""
        ...

    def files_below(self, path: str) -> list[str]:
        """The files in a directory and its directories, relative to it, sorted; empty if it does
        not exist."""
        ...

    def replace(self, path: str, target: str) -> None:
        """Rename a file, replacing the target; its directory is made if it does not exist."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file, or a directory with its content, if it exists."""
        ...


def local_path(path: str) -> Path | None:
    """The path on this machine if it has the scheme ``file:``, otherwise ``None``."""
    for scheme in ("file://", "file:"):
        if path.startswith(scheme):
            return Path(path.removeprefix(scheme))
    return None


class LocalFiles:
    """Files of this machine."""

    def read(self, path: str) -> str | None:
        """Read a small file; ``None`` if it does not exist."""
        try:
            return _local(path).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def write(self, path: str, text: str) -> None:
        """Write a small file atomically."""
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
        """The names in a directory, sorted."""
        try:
            return sorted(each.name for each in _local(path).iterdir())
        except FileNotFoundError:
            return []

    def move(self, path: str, target: str) -> None:
        """Rename a directory."""
        if _local(target).exists():
            raise FileExistsError(target)
        _local(path).rename(_local(target))

    def files_below(self, path: str) -> list[str]:
        """The files in a directory and its directories, relative to it, sorted."""
        top = _local(path)
        return sorted(str(each.relative_to(top)) for each in top.rglob("*") if each.is_file())

    def replace(self, path: str, target: str) -> None:
        """Rename a file, replacing the target."""
        _local(target).parent.mkdir(parents=True, exist_ok=True)
        _local(path).replace(_local(target))

    def remove(self, path: str) -> None:
        """Remove a file or a directory, if it exists."""
        found = _local(path)
        if found.is_dir() and not found.is_symlink():
            shutil.rmtree(found)
        else:
            found.unlink(missing_ok=True)


def _local(path: str) -> Path:
    return local_path(path) or Path(path)


class HadoopFiles:
    """Files of Hadoop's file systems, in Spark's JVM."""

    def __init__(self, gateway: Any, configuration: Any) -> None:
        jvm = gateway.jvm
        self._gateway = gateway
        self._hadoop = jvm.org.apache.hadoop.fs
        self._bytes = jvm.org.apache.commons.io.IOUtils
        self._configuration = configuration

    @classmethod
    def of(cls, spark: Any) -> HadoopFiles:
        """With the settings of a session. Raises ``ConfigError`` for Spark Connect."""
        try:
            context = spark.sparkContext
        except Exception as err:
            raise ConfigError(
                "a pipeline cannot use Spark Connect: it reads and writes files through Spark's "
                "JVM. Run it in another process (kip848 pipeline run) with the cluster as "
                "run.master, or use format('kip848') in this session"
            ) from err
        gateway = context._gateway  # noqa: SLF001 - no other way
        java = context._jsc  # noqa: SLF001 - no other way
        return cls(gateway, java.hadoopConfiguration())

    def is_local(self, path: str) -> bool:
        """Whether a path is on this machine."""
        return str(self._system(path).getUri().getScheme()) == "file"

    def local(self, path: str) -> Path:
        """The path on this machine."""
        return Path(str(self._system(path).makeQualified(self._path(path)).toUri().getPath()))

    def _path(self, path: str) -> Any:
        return self._hadoop.Path(path)

    def _system(self, path: str) -> Any:
        return self._path(path).getFileSystem(self._configuration)

    def read(self, path: str) -> str | None:
        """Read a small file; ``None`` if it does not exist."""
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
        """Write a small file: to a temporary name, which is then renamed."""
        folder, _, name = path.rpartition("/")
        draft = f"{folder}/.{name}.{secrets.token_hex(4)}"
        with _as_os_error(path):
            system = self._system(path)
            stream = system.create(self._path(draft), True)
            try:
                stream.write(bytearray(text.encode()))
            finally:
                stream.close()
            self._rename_over(draft, path)

    def _rename_over(self, path: str, target: str) -> None:
        """Rename a file, replacing the target: in one step where Hadoop can do that, as Spark does
        it for checkpoints."""
        source, place = self._path(path), self._path(target)
        try:
            context = self._hadoop.FileContext.getFileContext(place.toUri(), self._configuration)
        except Py4JJavaError as err:
            if "UnsupportedFileSystemException" not in str(err.java_exception):
                raise
            system = self._system(path)
            system.delete(place, False)
            if not system.rename(source, place):
                raise OSError(f"{path} could not be renamed to {target}") from err
            return
        kind = getattr(self._hadoop, "Options$Rename")
        options = self._gateway.new_array(kind, 1)
        options[0] = kind.OVERWRITE
        context.rename(source, place, options)

    def names(self, path: str) -> list[str]:
        """The names in a directory, sorted."""
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

    def files_below(self, path: str) -> list[str]:
        """The files in a directory and its directories, relative to it, sorted."""
        with _as_os_error(path):
            system = self._system(path)
            top = self._path(path)
            if not system.exists(top):
                return []
            start = len(str(system.makeQualified(top))) + 1
            found: list[str] = []
            each = system.listFiles(top, True)
            while each.hasNext():
                found.append(str(each.next().getPath().toString())[start:])
            return sorted(found)

    def replace(self, path: str, target: str) -> None:
        """Rename a file, replacing the target."""
        with _as_os_error(path):
            system = self._system(path)
            system.mkdirs(self._path(target).getParent())
            self._rename_over(path, target)

    def remove(self, path: str) -> None:
        """Remove a file or a directory, if it exists."""
        with _as_os_error(path):
            self._system(path).delete(self._path(path), True)


class _as_os_error:  # noqa: N801 - reads as a word
    """Raises errors of the JVM as ``OSError``."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, err: BaseException | None, _trace: Any) -> None:
        if err is not None and not isinstance(err, OSError) and hasattr(err, "java_exception"):
            message = str(getattr(err, "java_exception", err))
            raise OSError(f"{self._path}: {message}") from err
