"""Requests that no client of good faith sends get the answers of a real broker, or as little.

Nothing named, something named twice, no time to do it, ids and limits that cannot be: every field
of every answer is compared, and so is whether there is one.
"""

from __future__ import annotations

import pytest

from tests.support.odd_requests.administration import (
    alter_configs_oddly,
    change_topics_oddly,
    elect_oddly,
)
from tests.support.odd_requests.committing import (
    add_partitions_oddly,
    commit_oddly,
    fetch_offsets_oddly,
    write_markers_oddly,
)
from tests.support.odd_requests.joining import ask_for_topics_oddly, join_oddly
from tests.support.odd_requests.producing import produce_oddly
from tests.support.odd_requests.reading import (
    describe_partitions_oddly,
    fetch_oddly,
    find_offsets_oddly,
)
from tests.support.odd_requests.sides import Play, play_on_kafka, play_on_ours
from tests.support.odd_requests.talk import SILENT, differences

pytestmark = [pytest.mark.real_kafka, pytest.mark.timeout(240)]

CONVERSATIONS: tuple[Play, ...] = (
    produce_oddly,
    commit_oddly,
    fetch_offsets_oddly,
    add_partitions_oddly,
    write_markers_oddly,
    fetch_oddly,
    find_offsets_oddly,
    describe_partitions_oddly,
    change_topics_oddly,
    elect_oddly,
    alter_configs_oddly,
    join_oddly,
    ask_for_topics_oddly,
)
_SHOWN = 20


def test_odd_requests_get_the_same_answers(kafka_version: str) -> None:
    with play_on_kafka(kafka_version) as play:
        real, ids = play(CONVERSATIONS)
    ours = play_on_ours(kafka_version.rpartition(".")[0], ids, CONVERSATIONS)
    assert len(real) > 1000
    assert sum(answer == SILENT for answer in real.values()) >= 8
    found = differences(real, ours)
    assert not found, f"{len(found)} of {len(real)} differ:\n" + "\n".join(found[:_SHOWN])
