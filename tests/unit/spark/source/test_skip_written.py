"""What an output has already."""

from __future__ import annotations

import json

import pytest

from kip848_client.core.types import TopicPartition
from kip848_client.errors import ConfigError
from kip848_client.spark.source.core._options import source_options
from kip848_client.spark.source.core._skip_written import written_from

_A0, _A1 = TopicPartition("a", 0), TopicPartition("a", 1)
_IDS = {"a": "id-a"}
_SAID = json.dumps({"topics": _IDS, "ranges": {"a": {"0": [[20, 30], [10, 20], [40, 50]]}}})


@pytest.mark.parametrize(
    ("group_is_at", "goes_on_at"), [(9, None), (10, 30), (15, 30), (29, 30), (30, None), (44, 50)]
)
def test_who_is_within_what_is_written_goes_on_after_it(
    group_is_at: int, goes_on_at: int | None
) -> None:
    found = written_from(_SAID).after({_A0: group_is_at, _A1: 12}, _IDS)
    assert found == ({} if goes_on_at is None else {_A0: goes_on_at})


def test_a_topic_that_was_created_again_is_read_from_where_its_group_is() -> None:
    assert written_from(_SAID).after({_A0: 10}, {"a": "another"}) == {}


def test_nothing_written_is_nothing() -> None:
    assert written_from(None).after({_A0: 10}, _IDS) == {}


@pytest.mark.parametrize("said", ["", "[]", '{"ranges": {"a": {"x": [[0, 1]]}}, "topics": {}}'])
def test_what_holds_no_ranges_is_refused(said: str) -> None:
    with pytest.raises(ConfigError, match="option written"):
        written_from(said)


def test_it_is_for_members() -> None:
    said = {"kafka.bootstrap.servers": "b:1", "subscribe": "a", "written": _SAID}
    with pytest.raises(ConfigError, match="option written needs ownership=shared"):
        source_options(said, is_stream=True)
