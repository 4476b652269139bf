"""From a seed to the options of one world of fetching; see ``swarm``, whose manner this is."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from mock_coordinator.sim.swarm import Dice, Parameters, profile_of

__all__ = ["FetchOptions", "draw_fetch_options"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchOptions(Parameters):
    """Everything that differs between two runs of fetching."""

    # sizes
    session_slots: int
    """Fewer than 8 means that brokers give no sessions."""

    # the client
    has_group: bool
    """It begins at committed offsets, and is assigned topics by id."""
    read_committed: bool
    near: bool
    """It is in a rack of its own choice, and brokers send it to the replica there."""
    reset_policy: str
    min_bytes: int
    max_wait_ms: int
    max_bytes: int
    max_partition_bytes: int
    buffer_bytes: int
    rows_a_step: int
    """The rows of an answer that are taken in at once."""

    # the user
    records_max: int
    """What one poll takes at most."""
    stall: float
    """After a poll: it does not come back for up to 20 s."""
    act_every_ms: int
    """The user pauses, seeks, is assigned and unassigned."""

    # the log
    oversized: float
    """Of the batches, those that are larger than what is asked for of a partition."""
    transactional: float
    compact_every_ms: int
    retain_every_ms: int
    cut_every_ms: int
    """Unclean elections."""
    elect_every_ms: int
    administer_every_ms: int
    """Topics are deleted, made again, and grow."""

    # the brokers
    stop_every_ms: int
    evict_every_ms: int
    throttle: float
    corrupt: float
    """A bit of the records of an answer is flipped on the way."""
    refuse: float
    """An answer is an error of the whole request, or of one partition."""
    lag: float
    """A replica that does not lead lags behind, and says so by OFFSET_OUT_OF_RANGE."""


def draw_fetch_options(seed: int) -> FetchOptions:
    """The options of a seed."""
    dice = Dice(Random(f"{seed}/fetching/options"))
    partition_bytes = (100, 400, 2_000, 1 << 20)[dice.between(0, 3)]
    fetch_bytes = max(partition_bytes, (200, 4_000, 1 << 24)[dice.between(0, 2)])
    return FetchOptions(
        seed=seed,
        profile=profile_of(seed),
        codec=dice.between(0, 3) == 0,
        brokers=dice.between(1, 3),
        topics=dice.between(1, 3),
        partitions_max=dice.between(1, 5),
        safety_ms=dice.between(15, 60) * 1_000,
        session_slots=(4, 8, 1_000, 1_000)[dice.between(0, 3)],
        has_group=dice.between(0, 2) > 0,
        read_committed=dice.between(0, 1) == 0,
        near=dice.between(0, 2) == 0,
        reset_policy=("earliest", "latest", "none", "by_duration")[dice.between(0, 3)],
        min_bytes=(1, 1, 1, min(partition_bytes, 500) // 2)[dice.between(0, 3)],
        max_wait_ms=(100, 500, 500, 2_000)[dice.between(0, 3)],
        max_bytes=fetch_bytes,
        max_partition_bytes=partition_bytes,
        buffer_bytes=fetch_bytes * dice.between(1, 4),
        request_timeout_ms=dice.between(1, 10) * 1_000,
        poll_pause_ms=(5, 50, 500)[dice.between(0, 2)],
        records_max=(1, 5, 500)[dice.between(0, 2)],
        stall=dice.probability(0.05),
        act_every_ms=dice.period(500),
        produce_every_ms=dice.between(10, 500),
        oversized=dice.probability(0.5),
        transactional=dice.probability(0.8),
        compact_every_ms=dice.period(2_000),
        retain_every_ms=dice.period(3_000),
        cut_every_ms=dice.period(3_000),
        elect_every_ms=dice.period(1_500),
        administer_every_ms=dice.period(4_000),
        stop_every_ms=dice.period(4_000),
        evict_every_ms=dice.period(1_000),
        throttle=dice.probability(0.3),
        corrupt=dice.probability(0.1),
        refuse=dice.probability(0.2),
        lag=dice.probability(0.5),
        delay_ms_max=(2, 20, 200, 2_000)[dice.between(0, 3)],
        lose_request=dice.probability(0.2),
        lose_response=dice.probability(0.2),
        duplicate=dice.probability(0.1) if dice.between(0, 2) == 0 else 0.0,
        clog_every_ms=dice.period(4_000),
        partition_every_ms=dice.period(6_000),
        rows_a_step=(1, 2, 500, 500)[dice.between(0, 3)],
    )
