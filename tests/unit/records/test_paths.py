"""Which way of reading is chosen, in a fresh process: it is chosen when the package is imported."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from kip848_client.records import COMPILED
from kip848_client.records._paths import PATHS

OF_ANOTHER_EDITION = (
    "import sys, types; "
    "other = types.SimpleNamespace(EDITION=0, Batch=object, Columns=object); "
    "sys.modules['kip848_client.records._scan'] = other; "
)
MISSING = "import sys; sys.modules['kip848_client.records._scan'] = None; "


def compiled(before: str = "", **environment: str) -> bool:
    found = subprocess.run(
        [
            sys.executable,
            "-c",
            f"{before}from kip848_client.records import COMPILED as c; print(c)",
        ],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return found.stdout.strip() == "True"


def test_the_extension_serves_where_it_was_built() -> None:
    assert PATHS.keys() == ({False, True} if COMPILED else {False})
    assert compiled() == COMPILED


@pytest.mark.parametrize("before", [MISSING, OF_ANOTHER_EDITION])
def test_without_one_that_fits_the_codec_serves(before: str) -> None:
    assert not compiled(before)


def test_it_can_be_forgone() -> None:
    assert not compiled(KIP848_NO_EXTENSIONS="1")
