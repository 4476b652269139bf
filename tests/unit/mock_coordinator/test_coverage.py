"""The page of what is served: it is current, and it promises nothing that Kafka does not have."""

from __future__ import annotations

import pytest

from kip848_client.core.wire import APIS, DRAFT_API_KEYS, api_named
from mock_coordinator.core.profiles import PROFILES
from tools.docs.coverage.apis import KAFKA_APIS, LINES


@pytest.mark.parametrize("line", LINES)
def test_a_profile_serves_nothing_that_its_release_does_not_offer(line: str) -> None:
    for name, (low, high) in PROFILES[line].api_versions.items():
        offered = KAFKA_APIS[api_named(name).key].offered[line]
        assert offered[0] <= low <= high <= offered[1], name


def test_every_message_that_we_know_is_in_the_table_by_its_name() -> None:
    ours = {key: api.name for key, api in APIS.items() if key not in DRAFT_API_KEYS}
    assert ours == {key: KAFKA_APIS[key].name for key in ours}
    assert list(KAFKA_APIS) == list(range(max(KAFKA_APIS) + 1)), "no key is left out"


def test_every_api_that_is_served_can_be_read_and_written() -> None:
    for profile in PROFILES.values():
        for name, (low, high) in profile.api_versions.items():
            known = api_named(name).versions
            assert high <= known[1], name
            assert low >= known[0] or name == "Produce"
