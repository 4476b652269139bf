"""From a seed to the options of one world of producers; see ``swarm``, whose manner this is."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from mock_coordinator.sim.swarm import Dice, Parameters, profile_of

__all__ = ["ProduceOptions", "draw_produce_options"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceOptions(Parameters):
    """Everything that differs between two runs of producers."""

    # sizes
    plain: int
    """Producers without a transactional id."""
    transactional: int
    """Transactional ids, each with one producer or more."""

    # the producers
    level: int
    """Of ``transaction.version``: 1, 2, or 3 for one that changes meanwhile."""
    linger_ms: int
    batch_bytes: int
    buffer_bytes: int
    request_bytes: int
    in_flight_max: int
    delivery_timeout_ms: int
    transaction_timeout_ms: int

    # their users
    records_max: int
    """Appended at a time."""
    bad: float
    """Of the records, those that a broker finds too large."""
    abort: float
    """Of the transactions."""
    offsets: float
    """Of the transactions, those that commit offsets with them."""
    stranger: float
    """Of those, the ones whose member the group does not know."""
    hasty: float
    """Of the waits for a commit, those that are given up early."""
    crash: float
    """After an act of a user: its process dies, and another takes its place."""
    sleep: float
    """Or it sleeps, and mostly finds another one in its place when it wakes up."""
    rival: float
    """Or another one with the same transactional id begins beside it."""
    anew: float
    """Or it starts over with the brokers: all connections end, and it knows no leaders."""
    turned_down: float
    """Of the transactions, those that the driver refuses something of."""
    twice: float
    """Of the transactions with offsets, those that send others after the first ones. Not with
    ``duplicate``: the older ones could come again."""

    # the brokers
    message_bytes: int
    """That a topic takes at most in one batch."""
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


def draw_produce_options(seed: int) -> ProduceOptions:
    """The options of a seed."""
    dice = Dice(Random(f"{seed}/producing/options"))
    level = (1, 2, 2, 3)[dice.between(0, 3)]
    plain, transactional = ((2, 0), (1, 1), (0, 1), (0, 2), (1, 2))[dice.between(0, 4)]
    batch_bytes = (150, 400, 2_000)[dice.between(0, 2)]
    # before transactions V2 nothing keeps a request that comes twice from the next transaction
    may_repeat = level == 2 or not transactional
    return ProduceOptions(
        seed=seed,
        profile=profile_of(seed),
        codec=dice.between(0, 3) == 0,
        brokers=dice.between(1, 3),
        topics=dice.between(1, 2),
        partitions_max=dice.between(1, 4),
        safety_ms=dice.between(10, 40) * 1_000,
        plain=plain,
        transactional=transactional,
        level=level,
        linger_ms=(0, 5, 100)[dice.between(0, 2)],
        batch_bytes=batch_bytes,
        buffer_bytes=batch_bytes * (2, 20, 1_000)[dice.between(0, 2)],
        request_bytes=batch_bytes * (2, 1_000)[dice.between(0, 1)],
        in_flight_max=(1, 2, 5, 5)[dice.between(0, 3)],
        delivery_timeout_ms=(1_500, 6_000, 20_000)[dice.between(0, 2)],
        transaction_timeout_ms=(1_000, 4_000, 20_000)[dice.between(0, 2)],
        request_timeout_ms=dice.between(1, 4) * 500,
        poll_pause_ms=(2, 20, 200)[dice.between(0, 2)],
        produce_every_ms=0,
        records_max=(1, 5, 20)[dice.between(0, 2)],
        bad=dice.probability(0.05),
        abort=dice.probability(0.5),
        offsets=dice.probability(1.0),
        stranger=dice.probability(0.3),
        hasty=dice.probability(0.5),
        crash=dice.probability(0.05),
        sleep=dice.probability(0.05),
        rival=dice.probability(0.05),
        message_bytes=(200, 1_000, 100_000)[dice.between(0, 2)],
        elect_every_ms=dice.period(500),
        move_every_ms=dice.period(1_000),
        stop_every_ms=dice.period(3_000),
        throttle=dice.probability(0.2),
        refuse=dice.probability(0.2),
        refuse_late=dice.probability(0.2),
        delay_ms_max=(2, 20, 200, 1_000)[dice.between(0, 3)],
        lose_request=dice.probability(0.1),
        lose_response=dice.probability(0.1),
        duplicate=dice.probability(0.1) if may_repeat else 0.0,
        clog_every_ms=dice.period(3_000),
        partition_every_ms=dice.period(4_000),
        forget=dice.probability(0.5),
        anew=dice.probability(0.05),
        turned_down=dice.probability(0.3),
        twice=dice.probability(0.5),
    )
