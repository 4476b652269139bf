"""What Spark's checkpoint holds of a batch."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kip848_client.core.types import TopicPartition
from kip848_client.errors import ConfigError
from kip848_client.spark.source.core._manifest import OURS, Manifest

_TP = TopicPartition


def _manifest(ranges: dict[TopicPartition, tuple[int, int]], ids: dict[str, str]) -> Manifest:
    return Manifest(
        number=3,
        ranges=ranges,
        topic_ids=ids,
        ownership="shared",
        positions={_TP("b", 9): 0, _TP("c", 1): 7},
        unread=frozenset([_TP("c", 1)]),
        committed={_TP("a", 0): 4},
        epochs={_TP("a", 0): 2},
        token="0123456789ab",
        run=4,
        group="g",
    )


def test_it_survives_spark_and_its_text_does_not_depend_on_order() -> None:
    spans = {_TP("b", 10): (1, 2), _TP("a", 0): (5, 9)}
    batch = _manifest(spans, {"b": "id-b", "a": "id-a"})
    other = _manifest(dict(reversed(spans.items())), {"a": "id-a", "b": "id-b"})
    text = json.dumps(batch.to_json())
    assert text == json.dumps(other.to_json())
    assert Manifest.of(json.loads(text)) == batch
    assert batch.ends == {_TP("a", 0): 9, _TP("b", 9): 0, _TP("b", 10): 2, _TP("c", 1): 7}
    assert batch.size == 5


def test_its_form_is_that_of_sparks_own_source() -> None:
    """With one more key, that cannot be a topic."""
    said = _manifest({_TP("a", 0): (5, 9)}, {}).to_json()
    assert said.pop(OURS)
    assert said == {"a": {"0": 9}, "b": {"9": 0}, "c": {"1": 7}}


def test_a_later_version_is_refused() -> None:
    said = _manifest({}, {}).to_json()
    said[OURS]["version"] = 3
    with pytest.raises(ConfigError, match="a later version of kip848-client"):
        Manifest.of(said)


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
        {"@kip848": {"version": 2, "number": 1, "starts": {"a": {"0": 1}}}},
        {"a": {"0": 1}, "@kip848": {"version": 2, "number": 1, "starts": {"a": {"0": 2}}}},
        {"a": {"0": -1}, "@kip848": {"version": 2, "number": 1}},
        {"a": [], "@kip848": {"version": 2, "number": 1}},
        {"@kip848": []},
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
