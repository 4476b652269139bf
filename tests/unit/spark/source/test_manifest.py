"""What Spark's checkpoint holds of a batch."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kip848_client.core.types import TopicPartition
from kip848_client.errors import ConfigError
from kip848_client.spark.source.core._manifest import Manifest

_TP = TopicPartition


def test_it_survives_spark_and_its_text_does_not_depend_on_order() -> None:
    spans = {_TP("b", 10): (1, 2), _TP("b", 9): (0, 0), _TP("a", 0): (5, 9)}
    batch = Manifest(3, spans, {"b": "id-b", "a": "id-a"}, "exclusive")
    other = Manifest(3, dict(reversed(spans.items())), {"a": "id-a", "b": "id-b"}, "exclusive")
    text = json.dumps(batch.to_json())
    assert text == json.dumps(other.to_json())
    assert Manifest.of(json.loads(text)) == batch
    assert batch.ends == {_TP("a", 0): 9, _TP("b", 9): 0, _TP("b", 10): 2}
    assert batch.size == 5


@pytest.mark.parametrize(
    "said",
    [
        {"orders": {"0": 12}},  # Spark's own source
        {},
        {"number": 1, "ranges": {"a": {"0": [2, 1]}}, "topics": {}},
        {"number": 1, "ranges": {"a": {"0": [1]}}, "topics": {}},
        {"number": 1, "ranges": {"a": {"x": [1, 2]}}, "topics": {}},
        {"number": 1, "ranges": {"a": {"0": [1.5, 2]}}, "topics": {}},
        {"number": -1, "ranges": {}, "topics": {}},
        {"number": 1, "ranges": [], "topics": {}},
        {"number": 1, "ranges": {}, "topics": None},
        {"number": 1, "ranges": {}, "topics": {}, "ownership": "mine"},
    ],
)
def test_what_another_source_wrote_is_refused(said: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="use a new checkpointLocation"):
        Manifest.of(said)


@pytest.mark.parametrize(
    ("ranges", "ownership"),
    [
        ({"a": {"0": [0, 3], "1": [5, 5]}}, "exclusive"),
        ({"a": {"0": [7, 7]}}, "exclusive"),
        ({"a": {"0": [0, 3], "1": [5, 6]}}, None),
        ({}, None),
    ],
)
def test_what_an_older_version_wrote_does_not_say_its_ownership(
    ranges: dict[str, Any], ownership: str | None
) -> None:
    """A member had no empty ranges in its checkpoint; a query without membership may have none."""
    assert Manifest.of({"number": 1, "ranges": ranges, "topics": {}}).ownership == ownership
