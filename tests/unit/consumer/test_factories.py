"""Settings on their way to those who heed them."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kip848_client.config import ConsumerConfig
from kip848_client.consumer import _factories
from kip848_client.consumer._factories import fetch_core, group_core
from kip848_client.core.cluster import LeadersLearnt, LearnLeaders, PartitionLeader, TopicLeaders
from kip848_client.core.fetch import (
    AssignmentChanged,
    FetchSettings,
    ListOffsets,
    SendFetch,
    Sought,
    Started,
)
from kip848_client.core.offsets import OffsetTracker
from kip848_client.core.types import TopicId, TopicPartition
from kip848_client.runtime._membership import new_member_id
from kip848_client.runtime.client._parts import recovery
from tests.unit.consumer.fakes import FakeClock
from tests.unit.core.member._harness import MEMBER, MemberHarness

TP, T = TopicPartition("t", 0), TopicId(b"t" * 16)


def settings_of(monkeypatch: pytest.MonkeyPatch, **given: Any) -> FetchSettings:
    """What the core is given."""
    seen: list[FetchSettings] = []

    def core(settings: FetchSettings, _jitter: object) -> None:
        seen.append(settings)

    monkeypatch.setattr(_factories, "FetchCore", core)
    fetch_core(ConsumerConfig.of(given), FakeClock())
    return seen[0]


def test_what_the_user_sets_reaches_the_fetch_core(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = settings_of(
        monkeypatch,
        group_id="g",
        fetch_min_bytes=2,
        fetch_max_wait_ms=3,
        fetch_max_bytes=4,
        max_partition_fetch_bytes=5,
        fetch_buffer_bytes=6,
        isolation_level="read_committed",
        client_rack="r",
        auto_offset_reset="by_duration:PT1M",
        request_timeout_ms=7,
        retry_backoff_ms=2_000,
        metadata_max_age_ms=8,
    )
    assert (settings.min_bytes, settings.max_wait_ms, settings.max_bytes) == (2, 3, 4)
    assert (settings.max_partition_bytes, settings.buffer_bytes) == (5, 6)
    assert (settings.read_committed, settings.rack, settings.has_group) == (True, "r", True)
    assert (settings.reset_policy, settings.reset_age_ms) == ("by_duration", 60_000)
    assert (settings.request_timeout_ms, settings.metadata_max_age_ms) == (7, 8)
    assert settings.retry_backoff_max_ms == settings.retry_backoff_ms == 2_000
    assert settings.clock_origin_ms + 1_000 > 1_700_000_000_000  # some time after 2023


def test_without_settings_there_is_no_group_no_rack_and_no_isolation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = settings_of(monkeypatch)
    assert (settings.read_committed, settings.rack, settings.has_group) == (False, "", False)
    assert (settings.reset_policy, settings.reset_age_ms) == ("latest", 0)


def test_the_core_that_is_made_works() -> None:
    core = fetch_core(ConsumerConfig.of({"client_rack": "r"}), FakeClock())
    core.step(1_000, AssignmentChanged({TP: T}, frozenset({TP})))
    core.step(1_000, Sought(TP, 0))
    (question,) = core.step(1_000, Started((TP,))) or (None,)
    assert question is None or isinstance(question, LearnLeaders | ListOffsets)
    leaders = TopicLeaders("t", T, {0: PartitionLeader(1, 0, (1,))})
    told = LeadersLearnt(1, (leaders,), frozenset(), frozenset({1}))
    (fetch,) = core.step(1_000, told)
    assert isinstance(fetch, SendFetch)
    assert fetch.intent.rack == "r"


@pytest.mark.parametrize(("strategy", "begins_anew"), [("rebootstrap", True), ("none", False)])
def test_the_strategy_decides_whether_to_begin_anew(strategy: str, begins_anew: bool) -> None:
    config = ConsumerConfig.of(
        {
            "metadata_recovery_strategy": strategy,
            "metadata_recovery_rebootstrap_trigger_ms": 5,
        }
    )
    rule = recovery(config)
    rule.asked(0)
    assert rule.failed(5) is begins_anew
    assert rule.required() is begins_anew


@pytest.mark.parametrize(("extra", "pause_ms"), [(True, 500), (False, 5_000)])
def test_extra_heartbeats_are_a_setting(extra: bool, pause_ms: int) -> None:
    config = ConsumerConfig.of({"group_id": "g", "extra_heartbeats": extra})
    harness = MemberHarness()
    harness.core = group_core(
        config, MEMBER, OffsetTracker(), lambda _: None, lambda _: None
    ).member
    harness.stable(t=[])
    before = harness.now
    harness.next_heartbeat()
    assert harness.now == before + pause_ms


def test_processes_that_were_forked_have_members_of_their_own() -> None:
    """What both of them inherit is the state of a generator."""
    state = random.getstate()
    first = new_member_id()
    random.setstate(state)
    assert new_member_id() != first
    assert len({new_member_id() for _ in range(1_000)}) == 1_000
