"""Apache Kafka's published jars, resolved with Maven into a cache folder of the user.

``kafka_libs("4.4.0")`` gives the folder with every jar a broker of that release needs. The first
call of a release runs Maven once (a few seconds, about 42 MB); later calls, in any process, find
the finished folder. A lock file keeps parallel test workers from running Maven on one local
repository at a time, and a folder appears under its final name only when it is complete.

Nothing here raises for a machine that simply lacks the tools: ``KafkaUnavailableError`` carries a
sentence that a test can skip with.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Final

from mock_coordinator.core.profiles import PROFILES

__all__ = [
    "ALL_VERSIONS",
    "TOOLS_VERSION",
    "KafkaUnavailableError",
    "cache_root",
    "chosen_jars",
    "connect_libs",
    "find_java",
    "kafka_jar",
    "kafka_libs",
    "tools_libs",
]

ALL_VERSIONS: Final = tuple(profile.release for profile in PROFILES.values())
"""The release of each line that the coordinator has a profile for."""

TOOLS_VERSION: Final = "4.3.1"
"""4.4.0 was published without kafka-tools; the 4.3 tools work against every 4.x broker."""

_MINIMUM_JAVA: Final = 17
_MAVEN_TIMEOUT_S: Final = 900
_SLF4J_VERSION: Final = "1.7.36"
"""Kafka's jars name only SLF4J's interface, in this version; without a backend there is no log."""

_POM: Final = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>kip848.tests</groupId>
  <artifactId>jars</artifactId>
  <version>1</version>
  <dependencies>{dependencies}</dependencies>
</project>
"""

_DEPENDENCY: Final = """
    <dependency>
      <groupId>{group}</groupId>
      <artifactId>{artifact}</artifactId>
      <version>{version}</version>
      <exclusions>{exclusions}</exclusions>
    </dependency>
"""

_EXCLUSION: Final = (
    "<exclusion><groupId>{group}</groupId><artifactId>{artifact}</artifactId></exclusion>"
)
_ALONE: Final = _EXCLUSION.format(group="*", artifact="*")
# kafka_2.13 names kafka-tools-api, which was not published for 4.4.0; the broker runs without it.
_NO_TOOLS_API: Final = _EXCLUSION.format(group="org.apache.kafka", artifact="kafka-tools-api")


class KafkaUnavailableError(Exception):
    """Apache Kafka cannot be run here. The message says why, in words for a skip reason."""


@functools.cache
def find_java() -> str:
    """The path of a ``java`` that can run a Kafka 4 broker, or ``KafkaUnavailableError``."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin")) if home else None
    java = java or shutil.which("java")
    if java is None:
        raise KafkaUnavailableError("Java is missing: no `java` in JAVA_HOME or PATH")
    shown = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    match = re.search(r'version "(\d+)', shown.stderr)
    if match is None or int(match[1]) < _MINIMUM_JAVA:
        found = match[1] if match else "an unknown version"
        raise KafkaUnavailableError(f"Kafka 4 needs Java {_MINIMUM_JAVA}, {java} is {found}")
    return java


def kafka_libs(version: str) -> Path:
    """The folder with the jars of a broker of this release. Raises ``KafkaUnavailableError``."""
    return _resolved(version, _kafka("kafka_2.13", version, _NO_TOOLS_API))


def tools_libs() -> Path:
    """The folder with the jars of Kafka's command line tools. Raises ``KafkaUnavailableError``."""
    return _resolved(f"tools-{TOOLS_VERSION}", _kafka("kafka-tools", TOOLS_VERSION, ""))


def connect_libs() -> Path:
    """The folder with the jars of a Kafka Connect worker, and of connectors to and from files.
    Raises ``KafkaUnavailableError``."""
    wanted = (
        _kafka(artifact, TOOLS_VERSION, "") for artifact in ("connect-runtime", "connect-file")
    )
    return _resolved(f"connect-worker-{TOOLS_VERSION}", "".join(wanted))


def kafka_jar(version: str, artifact: str = "kafka-clients") -> Path:
    """One jar of a release, by artifact name. Raises ``KafkaUnavailableError``."""
    return kafka_libs(version) / f"{artifact}-{version}.jar"


def chosen_jars(folder: str, artifacts: Sequence[str]) -> list[Path]:
    """These jars, each ``GROUP:ARTIFACT:VERSION``, and none that they name, from a folder of this
    name. Raises ``KafkaUnavailableError``."""
    named = [each.split(":") for each in artifacts]
    wanted = "".join(_dependency(group, name, at, _ALONE) for group, name, at in named)
    return sorted(_resolved(folder, wanted).iterdir())


def _kafka(artifact: str, version: str, exclusions: str) -> str:
    return _dependency("org.apache.kafka", artifact, version, exclusions) + _dependency(
        "org.slf4j", "slf4j-simple", _SLF4J_VERSION, ""
    )


def _dependency(group: str, artifact: str, version: str, exclusions: str) -> str:
    return _DEPENDENCY.format(
        group=group, artifact=artifact, version=version, exclusions=exclusions
    )


@functools.cache
def _failures() -> dict[str, str]:
    """Reasons of this process: a machine without network is asked once, not once a test."""
    return {}


def cache_root() -> Path:
    """Where what tests download is kept between runs."""
    base = os.environ.get("XDG_CACHE_HOME")
    root = Path(base) if base else Path.home() / ".cache"
    return root / "kip848-client-tests" / "kafka"


def _resolved(folder: str, dependencies: str) -> Path:
    find_java()
    libs = cache_root() / folder / "libs"
    if libs.is_dir():
        return libs
    if folder in _failures():
        raise KafkaUnavailableError(_failures()[folder])
    try:
        with _locked(cache_root() / f"{folder}.lock"):
            if not libs.is_dir():  # another worker may have finished while we waited
                _run_maven(_POM.format(dependencies=dependencies), libs)
    except (KafkaUnavailableError, OSError) as err:
        _failures()[folder] = str(err)
        raise KafkaUnavailableError(str(err)) from err
    return libs


@contextlib.contextmanager
def _locked(path: Path) -> Generator[None]:
    try:
        import fcntl
    except ImportError as err:
        raise KafkaUnavailableError("real Kafka in the tests needs a POSIX system") from err
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _run_maven(pom_text: str, libs: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise KafkaUnavailableError(
            "Maven is missing: no `mvn` in PATH to resolve Kafka's jars with"
        )
    libs.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=libs.parent) as scratch:
        pom = Path(scratch) / "pom.xml"
        pom.write_text(pom_text)
        target = Path(scratch) / "libs"
        # -f, because Maven otherwise takes whatever pom lies in the working directory.
        command = [maven, "-q", "-B", "-f", str(pom), "dependency:copy-dependencies"]
        command += [f"-DoutputDirectory={target}", "-DincludeScope=runtime"]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=_MAVEN_TIMEOUT_S
            )
        except subprocess.TimeoutExpired as err:
            raise KafkaUnavailableError(f"Maven gave no answer in {_MAVEN_TIMEOUT_S} s") from err
        if done.returncode != 0 or not target.is_dir():
            said = (done.stdout + done.stderr).strip().splitlines()
            raise KafkaUnavailableError(
                f"Maven could not resolve Kafka's jars: {said[0] if said else ''}"
            )
        target.rename(libs)
