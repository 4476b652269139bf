"""Installs the package as users do, and tries it: ``python tools/clean_install``.

The clone becomes an archive of the sources, that becomes a wheel without a compiler, and the wheel
goes into a new environment. From another folder, where nothing of the clone can be imported, the
commands, the pytest plugin, the names of each public module and Spark's format are tried. Needs
the extra ``test``, the versions in ``constraints.txt``, and Java for the last step.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

__all__ = ["main"]

ROOT = Path(__file__).resolve().parents[2]
CHECKS = Path(__file__).resolve().parent / "checks"
EXTRAS = "otel,prometheus,report,schema-registry,spark,telemetry"
"""All that users have; ``arrow`` is in ``spark``."""
WITHOUT_A_COMPILER = {"CC": "/there/is/no/compiler", "CXX": "/there/is/no/compiler"}


class Steps:
    """Runs one after the other in a folder of their own, and says how long each took."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        hidden = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "KIP848_NO_EXTENSIONS"}
        self._environment = {k: v for k, v in os.environ.items() if k not in hidden}

    def run(self, what: str, *words: str | Path, **more: str) -> str:
        """The command's output. Ends the program when the command fails."""
        began = time.monotonic()
        done = subprocess.run(
            [str(word) for word in words],
            cwd=self._folder,
            env=self._environment | more,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        took = time.monotonic() - began
        if done.returncode:
            sys.exit(f"{done.stdout}\nclean install: {what} ended with code {done.returncode}")
        sys.stdout.write(f"clean install: {what}: {took:.0f} s\n")
        sys.stdout.flush()
        return done.stdout


def _only_file(folder: Path, pattern: str) -> Path:
    (found,) = folder.glob(pattern)
    return found


def _wheel(steps: Steps, folder: Path) -> Path:
    """Of an archive of the sources, in an environment of its own, as pip does it."""
    build: list[str | Path] = [
        sys.executable,
        "-m",
        "hatchling",
        "build",
        "-t",
        "sdist",
        "-d",
        folder,
    ]
    archived = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    if archived.returncode:
        sys.exit(f"{archived.stderr}\nclean install: no archive of the sources was made")
    archive = _only_file(folder, "*.tar.gz")
    with tarfile.open(archive) as packed:
        compiled = [name for name in packed.getnames() if name.endswith((".so", ".pyd", ".pyc"))]
    assert not compiled, f"the archive of the sources has what was compiled: {compiled}"
    pip: list[str | Path] = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps"]
    steps.run(
        "a wheel of the archive, without a compiler",
        *pip,
        "-w",
        folder,
        archive,
        **WITHOUT_A_COMPILER,
    )
    wheel = _only_file(folder, "*.whl")
    assert wheel.name.endswith("-none-any.whl"), f"{wheel.name} is for one platform only"
    return wheel


def _try(steps: Steps, bin_folder: Path) -> None:
    """Everything that needs no Java."""
    kip848, python = bin_folder / "kip848", bin_folder / "python"
    said = steps.run("kip848 --version", kip848, "--version")
    assert "compiled extensions: none" in said, said
    sys.stdout.write(steps.run("every name of every public module", python, "names.py"))
    steps.run("kip848 demo", kip848, "demo")
    steps.run("kip848 simulate --seeds 0..1", kip848, "simulate", "--seeds", "0..1")
    steps.run("the pytest plugin", python, "-m", "pytest", "-q", "plugin_check.py")


def main() -> int:
    """Ends with an error at the first step that fails."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kip848-clean-install-") as name:
        folder = Path(name)
        elsewhere = folder / "elsewhere"
        shutil.copytree(CHECKS, elsewhere)  # pytest would take the settings of the clone
        steps = Steps(elsewhere)
        wheel = _wheel(steps, folder)
        steps.run("a new environment", sys.executable, "-m", "venv", folder / "venv")
        python = folder / "venv" / "bin" / "python"
        pip: list[str | Path] = [python, "-m", "pip", "install", "-q"]
        pip += ["-c", ROOT / "constraints.txt"]
        steps.run("the wheel alone, and pytest", *pip, wheel, "pytest", **WITHOUT_A_COMPILER)
        base = ("kip848_client", "kip848_client.aiokafka", "mock_coordinator")
        steps.run("names that need no extra", python, "names.py", *base)
        steps.run("its extras", *pip, f"{wheel}[{EXTRAS}]", **WITHOUT_A_COMPILER)
        _try(steps, python.parent)
        if shutil.which("java") is None:
            sys.stdout.write("clean install: Spark's format was not tried: there is no java\n")
        else:
            steps.run("Spark's format, without register()", python, "spark_format.py")
    sys.stdout.write(f"clean install: all of it: {time.monotonic() - began:.0f} s\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
