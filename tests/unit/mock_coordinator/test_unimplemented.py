"""Share groups and streams groups: advertised, and refused whoever asks for whatever group."""

from __future__ import annotations

from typing import Any

import pytest

from kip848_client.error_codes import ErrorCode
from kip848_client.wire import APIS
from mock_coordinator.core.profile import PROFILES
from mock_coordinator.core.unimplemented import UNIMPLEMENTED
from tests.support.plain_message import message
from tests.unit.mock_coordinator.broker_at_hand import AtHand

GROUPS = ("one", "two")
BODIES: dict[int, dict[str, Any]] = {
    77: {"group_ids": GROUPS},
    89: {"group_ids": GROUPS},
    90: {"groups": [{"group_id": group, "topics": None} for group in GROUPS]},
}
"""Requests whose answer has an error for each group; all others have one for the whole."""


@pytest.mark.parametrize("profile", PROFILES)
def test_every_version_that_is_advertised_is_refused(profile: str) -> None:
    hand = AtHand(profile=profile)
    offered = {
        key: range(low, high + 1)
        for key, (low, high) in PROFILES[profile].api_versions.items()
        if key in UNIMPLEMENTED
    }
    assert bool(offered) == PROFILES[profile].share_groups
    for key, versions in offered.items():
        for version in versions:
            answer = hand.ask(message(APIS[key].name, **BODIES.get(key, {})), version)
            if key in BODIES:
                said = [(each.group_id, each.error_code) for each in answer.groups]
                assert said == [(group, 35) for group in GROUPS]
            else:
                assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION


def test_what_brokers_ask_each_other_about_share_groups_is_not_offered() -> None:
    for profile in PROFILES.values():
        assert not set(range(83, 88)) & set(profile.api_versions)
