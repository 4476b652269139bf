"""From a seed to the options of one world of workers; see ``swarm``, whose manner this is."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from mock_coordinator.sim.swarm import Dice, Parameters, profile_of

__all__ = ["WorkerOptions", "draw_worker_options"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions(Parameters):
    """Everything that differs between two runs of workers."""

    # sizes
    workers: int
    connectors: int
    tasks_max: int

    # the group
    assignor: str
    session_timeout_ms: int
    heartbeat_interval_ms: int
    initial_delay_ms: int
    """``group.initial.rebalance.delay.ms``."""
    delay_max_ms: int
    """``scheduled.rebalance.max.delay.ms``."""

    # the workers
    static: float
    stop_ms_max: int
    """To stop items; ``task.shutdown.graceful.timeout.ms`` is as long."""
    start_ms_max: int
    read_ms_max: int
    """How long a worker takes to read a new configuration; this may be longer than a session."""
    compute_ms_max: int
    assignor_fails: float
    """Of the computations."""
    sleep_ms_max: int

    # what happens
    act_every_ms: int
    """A worker comes, goes, is killed, bounced or put to sleep."""
    configure_every_ms: int
    move_every_ms: int
    """Coordinators."""
    stop_every_ms: int

    @property
    def rebalance_timeout_ms(self) -> int:
        """Longer than a worker without a coordinator goes on: a worker is not fenced while it still
        runs what it has to give back."""
        return 2 * self.session_timeout_ms + self.stop_ms_max


def draw_worker_options(seed: int) -> WorkerOptions:
    """The options of a seed."""
    dice = Dice(Random(f"{seed}/workers/options"))
    session_ms = dice.between(10, 45) * 1_000
    return WorkerOptions(
        seed=seed,
        profile=profile_of(seed),
        codec=dice.between(0, 3) == 0,
        brokers=dice.between(1, 3),
        workers=dice.between(1, 5),
        connectors=dice.between(1, 6),
        tasks_max=dice.between(1, 5),
        topics=0,
        partitions_max=0,
        safety_ms=dice.between(60, 240) * 1_000,
        assignor=("incremental", "incremental", "spread")[dice.between(0, 2)],
        session_timeout_ms=session_ms,
        heartbeat_interval_ms=min(dice.between(500, 5_000), session_ms // 3),
        delay_max_ms=(0, 5_000, 20_000, 60_000)[dice.between(0, 3)],
        static=dice.probability(1.0),
        stop_ms_max=(1, 300, session_ms // 4)[dice.between(0, 2)],
        start_ms_max=(1, 500, 10_000)[dice.between(0, 2)],
        read_ms_max=(1, 300, 5_000, session_ms * 3)[dice.between(0, 3)],
        compute_ms_max=(1, 500, 20_000)[dice.between(0, 2)],
        assignor_fails=dice.probability(0.5),
        sleep_ms_max=session_ms * 2,
        request_timeout_ms=dice.between(1, 8) * 500,
        poll_pause_ms=0,
        produce_every_ms=0,
        act_every_ms=dice.between(2_000, 20_000),
        configure_every_ms=dice.period(5_000),
        move_every_ms=dice.period(8_000),
        stop_every_ms=dice.period(10_000),
        delay_ms_max=(2, 20, 200, 1_000)[dice.between(0, 3)],
        lose_request=dice.probability(0.2),
        lose_response=dice.probability(0.2),
        duplicate=dice.probability(0.1),
        clog_every_ms=dice.period(6_000),
        partition_every_ms=dice.period(8_000),
        initial_delay_ms=(0, 500, 3_000)[dice.between(0, 2)],
    )
