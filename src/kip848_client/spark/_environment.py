"""Checks what Spark needs on a machine before it is started: its own errors are long."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from kip848_client.core.extras import installation
from kip848_client.errors import ConfigError

__all__ = ["check_environment"]

_JAVA: Final = 17
_SPARK: Final = (4, 2)
_VERSION: Final = re.compile(r'version "(\d+)')


def check_environment(environment: Mapping[str, str] | None = None) -> None:
    """Raise ``ConfigError`` if pyspark or Java is missing or too old, with what to do."""
    _check_pyspark()
    _check_java(os.environ if environment is None else environment)


def _check_pyspark() -> None:
    way_out = installation("spark")
    try:
        found = importlib.metadata.version("pyspark")
        importlib.metadata.version("pyarrow")
    except importlib.metadata.PackageNotFoundError as err:
        raise ConfigError(
            f"a pipeline needs {err.name}, which is not installed: {way_out}"
        ) from None
    numbers = tuple(int(part) for part in re.findall(r"\d+", found)[:2])
    if not _SPARK <= numbers < (5,):
        raise ConfigError(
            f"a pipeline needs pyspark 4.2 or newer, below 5, but {found} is installed: {way_out}"
        )


def _check_java(environment: Mapping[str, str]) -> None:
    way_out = (
        f"install Java {_JAVA} or newer (Debian and Ubuntu: apt install openjdk-17-jre-headless; "
        "macOS: brew install openjdk@17), or set JAVA_HOME to one"
    )
    home = environment.get("JAVA_HOME")
    path = environment.get("PATH")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java", path=path or "")
    if java is None or not Path(java).exists():
        where = f"JAVA_HOME={home} has no bin/java" if home else "there is no java on the PATH"
        raise ConfigError(f"Spark needs Java {_JAVA}, but {where}: {way_out}")
    try:
        said = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=60, check=False
        ).stderr
    except (OSError, subprocess.TimeoutExpired) as err:
        raise ConfigError(f"{java} cannot be run: {err}; {way_out}") from err
    found = _VERSION.search(said)
    if found is None:
        raise ConfigError(f"{java} does not report its version ({said.strip()[:200]!r}): {way_out}")
    if int(found[1]) < _JAVA:
        raise ConfigError(f"Spark needs Java {_JAVA}, but {java} has version {found[1]}: {way_out}")
