"""The extension under AddressSanitizer and UBSan, on whatever bytes and while memory runs out: it
reads and writes nothing that is not its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SOURCES = ROOT / "src" / "kip848_client" / "records" / "_extension"
FLAGS = ["-g", "-O1", "-fPIC", "-shared", "-fsanitize=address,undefined", "-fno-sanitize-recover"]
PLAYED = [
    "test_damaged_batches.py",
    "test_interruptions.py",
    "test_header_names.py",
    "test_unreadable_records.py",
]

RUN = """
import importlib.util, sys
name = "kip848_client.records._scan"
spec = importlib.util.spec_from_file_location(name, sys.argv[1])
sys.modules[name] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules[name])
import pytest
sys.exit(pytest.main(["-n0", "-q", "-s", "-p", "no:cacheprovider", *sys.argv[2:]]))
"""

pytestmark = [
    pytest.mark.everything("it compiles the extension, and runs many tests with a slow one"),
    pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc"),
]


def runtime(name: str) -> str:
    """Where gcc has this library of its own; the name alone if it has none."""
    asked = subprocess.run(
        ["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True
    )
    return asked.stdout.strip()


def played(library: Path, *tests: str) -> subprocess.CompletedProcess[str]:
    runtimes = [runtime("libasan.so"), runtime("libubsan.so")]
    if not all(Path(each).is_absolute() for each in runtimes):
        pytest.skip("this gcc has no sanitizers")
    environment = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
    environment |= {
        "LD_PRELOAD": ":".join(runtimes),
        "ASAN_OPTIONS": "detect_leaks=0",  # CPython itself keeps objects to its end
        "PYTHONMALLOC": "malloc",  # so that each object has red zones of its own
    }
    return subprocess.run(
        [sys.executable, "-c", RUN, str(library), *tests],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def sanitized(sources: Path, folder: Path) -> Path:
    library = folder / "_scan.so"
    files = [str(path) for path in sorted(sources.glob("*.c"))]
    include = f"-I{sysconfig.get_path('include')}"
    subprocess.run(["gcc", *FLAGS, include, *files, "-o", str(library)], check=True)
    return library


def test_nothing_is_read_or_written_that_is_not_ours(tmp_path: Path) -> None:
    tests = [str(Path(__file__).with_name(name)) for name in PLAYED]
    done = played(sanitized(SOURCES, tmp_path), *tests)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]


def test_it_would_be_noticed(tmp_path: Path) -> None:
    """Of the same tests, with a comparison left out."""
    sources = tmp_path / "sources"
    shutil.copytree(SOURCES, sources)
    header = sources / "record.h"
    careful = header.read_text()
    careless = careful.replace(" || length > batch_end - at", "")
    assert careless != careful
    header.write_text(careless)
    done = played(sanitized(sources, tmp_path), str(Path(__file__).with_name(PLAYED[0])))
    assert done.returncode != 0
    assert "AddressSanitizer" in done.stdout + done.stderr
