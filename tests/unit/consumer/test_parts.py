"""What the settings of a consumer mean for the parts that it is made of."""

from __future__ import annotations

import pytest

from kip848_client.config import ConsumerConfig
from kip848_client.consumer._parts import group_core
from kip848_client.offsets import OffsetTracker
from tests.unit.member._harness import MEMBER, MemberHarness


@pytest.mark.parametrize(("extra", "pause_ms"), [(True, 500), (False, 5_000)])
def test_extra_heartbeats_are_a_setting(extra: bool, pause_ms: int) -> None:
    config = ConsumerConfig.of({"group_id": "g", "extra_heartbeats": extra})
    harness = MemberHarness()
    harness.core = group_core(config, MEMBER, OffsetTracker(), lambda _: None).member
    harness.stable(t=[])
    before = harness.now
    harness.next_heartbeat()
    assert harness.now == before + pause_ms
