"""What Spark's processes import: it begins one for each ``load()`` and each plan."""

from __future__ import annotations

import subprocess
import sys

import pytest

_PROGRAM = """
import sys
from kip848_client.spark._data_source import Kip848DataSource
from kip848_client.spark._schema import schema_of
schema = schema_of(with_headers=False)
brokers = {"kafka.bootstrap.servers": "a:1"}
reading = Kip848DataSource(brokers | {"subscribe": "a"})
writing = Kip848DataSource(brokers | {"topic": "a"})
%s
print(*(each for each in sys.modules if each.startswith("kip848_client.")))
"""


@pytest.mark.parametrize(
    ("step", "has"),
    [
        ("reading.schema()", set[str]()),
        ("reading.streamReader(schema)", {"config"}),
        ("reading.streamReader(schema)._run()", {"admin", "config"}),
        ("reading.reader(schema)", {"config"}),
        ("writing.streamWriter(schema, False)", {"config"}),
        ("writing.writer(schema, False)", {"config"}),
    ],
)
def test_a_step_imports_what_it_needs(step: str, has: set[str]) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", _PROGRAM % step], capture_output=True, text=True, check=True
    )
    heavy = {"admin", "config", "consumer", "producer"}
    assert heavy & {name.split(".")[1] for name in ran.stdout.split()} == has
