"""From a seed to the options of one world of processors; see ``swarm``, whose manner this is."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from mock_coordinator.sim.swarm import Dice, GroupParameters, profile_of

__all__ = ["ProcessOptions", "draw_process_options"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessOptions(GroupParameters):
    """Everything that differs between two runs of processors."""

    # sizes
    processors: int
    """At the start. ``topics`` are those that are read; there is one to write to, and one for dead
    letters."""

    # the processors
    batch: bool
    """The function takes all records in hand at once."""
    dead_letters: bool
    max_records: int
    commit_interval_ms: int
    poll_wait_ms: int
    revocation_patience_ms: int
    listener_timeout_ms: int
    """How long the group's consumer waits for its listener."""
    max_block_ms: int
    work_ms_max: int
    """The function's."""
    raises: float
    """Of the calls of the function, those that raise once."""
    poison: float
    """Of the inputs, those that it cannot process (with dead letters)."""

    # their producers
    level: int
    """Of ``transaction.version``: 1, 2, or 3 for one that changes meanwhile."""
    linger_ms: int
    batch_bytes: int
    buffer_bytes: int
    in_flight_max: int
    delivery_timeout_ms: int
    transaction_timeout_ms: int

    # their processes
    static: float
    act_every_ms: int
    """Something happens to one of them."""
    sleep_ms_max: int

    # the brokers
    assignor: str
    elect_every_ms: int
    move_every_ms: int
    """Coordinators."""
    stop_every_ms: int
    forget: float
    """Of new leaders, those that know of each producer the newest batch alone."""
    throttle: float
    refuse: float
    """An answer is an error for a while."""
    refuse_late: float
    """The same, although the request was performed."""


def draw_process_options(seed: int) -> ProcessOptions:
    """The options of a seed. Before transactions V2 nothing keeps a request that comes
    twice from the next transaction."""
    dice = Dice(Random(f"{seed}/exactly once/options"))
    level = (1, 2, 2, 3)[dice.between(0, 3)]
    session_ms = dice.between(3, 12) * 1_000
    return ProcessOptions(
        seed=seed,
        profile=profile_of(seed),
        codec=dice.between(0, 5) == 0,
        brokers=dice.between(1, 3),
        processors=dice.between(1, 3),
        topics=dice.between(1, 2),
        partitions_max=dice.between(1, 4),
        safety_ms=dice.between(10, 40) * 1_000,
        request_timeout_ms=dice.between(1, 4) * 500,
        poll_pause_ms=0,
        produce_every_ms=(100, 300, 1_000)[dice.between(0, 2)],
        batch=dice.between(0, 3) == 0,
        dead_letters=dice.between(0, 2) == 0,
        max_records=(2, 10, 50)[dice.between(0, 2)],
        commit_interval_ms=(0, 20, 100, 1_000)[dice.between(0, 3)],
        poll_wait_ms=(50, 500)[dice.between(0, 1)],
        revocation_patience_ms=(500, 5_000, 60_000)[dice.between(0, 2)],
        listener_timeout_ms=(1_000, 10_000, 120_000)[dice.between(0, 2)],
        max_block_ms=(300, 2_000, 10_000)[dice.between(0, 2)],
        work_ms_max=(0, 5, 100, 2_000)[dice.between(0, 3)],
        raises=dice.probability(0.1),
        poison=dice.probability(0.1),
        level=level,
        linger_ms=(0, 5, 100)[dice.between(0, 2)],
        batch_bytes=(150, 400, 2_000)[dice.between(0, 2)],
        buffer_bytes=(2_000, 8_000, 2_000_000)[dice.between(0, 2)],
        in_flight_max=(1, 5)[dice.between(0, 1)],
        delivery_timeout_ms=(1_500, 6_000, 20_000)[dice.between(0, 2)],
        transaction_timeout_ms=(1_000, 4_000, 20_000)[dice.between(0, 2)],
        session_timeout_ms=session_ms,
        heartbeat_interval_ms=min(dice.between(200, 2_000), session_ms // 3),
        max_poll_interval_ms=dice.between(3, 30) * 1_000,
        resolve_ms_max=(20, 1_000)[dice.between(0, 1)],
        unresolved=dice.probability(0.3),
        static=dice.probability(1.0),
        act_every_ms=dice.period(1_000),
        sleep_ms_max=dice.between(1_000, 2 * session_ms),
        assignor=("uniform", "range")[dice.between(0, 1)],
        elect_every_ms=dice.period(1_000),
        move_every_ms=dice.period(1_500),
        stop_every_ms=dice.period(5_000),
        forget=dice.probability(0.5),
        throttle=dice.probability(0.1),
        refuse=dice.probability(0.1),
        refuse_late=dice.probability(0.1),
        delay_ms_max=(2, 20, 200, 1_000)[dice.between(0, 3)],
        lose_request=dice.probability(0.05),
        lose_response=dice.probability(0.05),
        duplicate=dice.probability(0.05) if level == 2 else 0.0,
        clog_every_ms=dice.period(4_000),
        partition_every_ms=dice.period(6_000),
    )
