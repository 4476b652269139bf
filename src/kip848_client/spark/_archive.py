"""This package as one zip file on Python's path, for executors that do not have it installed.

It contains the sources, also compiled for the Python version that wrote it; other versions compile
them again. It has no C extensions: they may not fit the other machine, Python does not import them
from a zip file, and the package works without them.
"""

from __future__ import annotations

import importlib.util
import marshal
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kip848_client.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["ship", "write_archive"]

_PACKAGES: Final = ("kip848_client", "pyspark_kip848")
_KEPT: Final = (".py", ".sql", ".typed")
_OF_SOURCES: Final = "streaming_job"
_WHEN: Final = (2024, 1, 1, 0, 0, 0)
"""A fixed time: the same sources make the same file."""


def write_archive(file: str | Path) -> Path:
    """Write this package, in pure Python, as an archive for executors.

    Use it with ``--py-files`` of ``spark-submit`` or ``spark.addArtifacts(file, pyfile=True)``.
    What the package needs (aiokafka and others) is not in it.

    Args:
        file: A path that ends with ``.zip``.

    Returns:
        The path.

    Raises:
        ConfigError: The name has another ending.
        OSError: The file cannot be written.
    """
    path = Path(file)
    if path.suffix != ".zip":
        raise ConfigError(f"{file}: the name of a Python archive for Spark must end with .zip")
    here = _archive_of_this_process()
    if here is not None:
        return Path(shutil.copyfile(here, path))
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in _contents():
            archive.writestr(zipfile.ZipInfo(name, _WHEN), content, zipfile.ZIP_DEFLATED)
    return path


def ship(spark: SparkSession) -> None:
    """Give this package, in pure Python, to the executors of a session.

    They use it before one that they have installed; Spark Connect's, too. Call ``register`` after
    it. Executors need what the package needs (aiokafka, pyarrow and others), at the same paths as
    here or in an archive. A driver that has the package from ``--py-files`` gives nothing more: its
    executors have it, too.

    Args:
        spark: The session.

    Raises:
        ConfigError: The package cannot be found.
        OSError: The archive cannot be written.
    """
    file = _archive_of_this_process()
    if file is None:
        file = _of_this_process()
        spark.addArtifacts(str(file), pyfile=True)
    _give_to_source(file)


def _give_to_source(file: Path) -> None:
    """Copy the file for the processes of streaming sources and sinks. Spark passes them the names
    of Python files, but never puts the files into the directory where they look for them
    (``PythonStreamingSourceRunner`` of 4.3). They run on the driver's machine, so the file can be
    copied there. With Spark Connect that may be another machine, so nothing is copied."""
    from pyspark import SparkContext, SparkFiles

    if SparkContext._active_spark_context is not None:  # noqa: SLF001 - None with Spark Connect
        folder = Path(SparkFiles.getRootDirectory()) / _OF_SOURCES
        folder.mkdir(exist_ok=True)
        shutil.copyfile(file, folder / file.name)


@cache
def _of_this_process() -> Path:
    """One file for all sessions: Spark accepts a name once, and may read the file at any time."""
    return write_archive(Path(_folder().name) / "kip848_client.zip")


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """A folder that is removed with the process."""
    return tempfile.TemporaryDirectory(prefix="kip848-", ignore_cleanup_errors=True)


def _contents() -> Iterator[tuple[str, bytes]]:
    for package in _PACKAGES:
        root = _folder_of(package)
        for found in sorted(root.rglob("*")):
            if found.suffix not in _KEPT:
                continue
            content = found.read_bytes()
            name = f"{package}/{found.relative_to(root).as_posix()}"
            yield name, content
            if found.suffix == ".py":
                yield f"{name}c", _compiled(content, name)


def _folder_of(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ConfigError(f"package {package} is missing: reinstall kip848-client")
    return Path(spec.origin).parent


def _archive_of_this_process() -> Path | None:
    """The archive from which this process imported the package, if it did."""
    found = _folder_of(_PACKAGES[0]).parent
    return found if found.is_file() else None


def _compiled(source: bytes, name: str) -> bytes:
    """The content of a ``.pyc`` that is used without checking the source (PEP 552)."""
    code = compile(source, name, "exec", dont_inherit=True)
    head = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little")
    return head + importlib.util.source_hash(source) + marshal.dumps(code)
