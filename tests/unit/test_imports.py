"""What a program pays for that imports a client: nothing of the other clients."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType
from typing import Final

import pytest

import kip848_client
from kip848_client import config
from kip848_client.observe.core import watching

_OTHERS: Final = {
    "Consumer": ("producing", "producer", "admin", "worker", "connect", "exactly_once"),
    "Producer": ("fetching", "consumer", "member", "admin", "worker", "connect", "assignors"),
}
_OF_ADMINISTRATION: Final = ("acls", "client_quotas", "replicas", "scram_credentials", "configs")


def imported(code: str) -> set[str]:
    script = f"{code}\nimport sys; print('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stdout.split())


@pytest.mark.parametrize("name", _OTHERS)
def test_a_client_brings_nothing_of_the_others(name: str) -> None:
    found = imported(f"from kip848_client import {name}")
    wrong = [f"kip848_client.{each}" for each in _OTHERS[name]]
    wrong += [f"kip848_client.core.wire.messages.{each}" for each in _OF_ADMINISTRATION]
    wrong += ["pyarrow", "opentelemetry", "prometheus_client", "mock_coordinator", "pyspark"]
    assert not found & set(wrong)


def test_the_package_alone_brings_no_library() -> None:
    found = imported("import kip848_client; kip848_client.__version__")
    assert not found & {"pydantic", "aiokafka", "anyio", "asyncio"}


@pytest.mark.parametrize("package", [kip848_client, config, watching])
def test_each_name_that_is_imported_late_is_there(package: ModuleType) -> None:
    assert all(getattr(package, name) is not None for name in package.__all__)
    missing = "nothing"
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        getattr(package, missing)
