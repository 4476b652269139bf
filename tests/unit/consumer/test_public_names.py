"""The names that users import."""

from __future__ import annotations

import subprocess
import sys

import pytest

import kip848_client


@pytest.mark.parametrize("name", kip848_client.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(kip848_client, name) is not None
    assert name in dir(kip848_client)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="Produzer"):
        kip848_client.__getattr__("Produzer")


def test_importing_the_package_imports_nothing_heavy() -> None:
    heavy = ("aiokafka", "pydantic", "anyio", "re2", "kip848_client.core.wire")
    code = f"import sys, kip848_client; print([n for n in {heavy!r} if n in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout.strip() == "[]"
