"""From a seed to the options of one run: every size and every probability is drawn.

A run in which everything goes wrong a little is a poor test: the faults hide one another. So each
kind of trouble is left out of about every third run, mild in others and heavy in some (swarm
testing). The options are printed with a failure; ``--set NAME=VALUE`` of the command line replaces
one, which is how a failing seed is made smaller by hand.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from random import Random
from typing import Final, TypeVar

from kip848_client.errors import ConfigError
from mock_coordinator.core.profiles import PROFILES

__all__ = [
    "SESSION_MS_MIN",
    "AnyParameters",
    "Dice",
    "GroupParameters",
    "Options",
    "Parameters",
    "changes_of",
    "draw_options",
    "profile_of",
    "replaying",
    "with_changes",
]


SESSION_MS_MIN: Final = 6_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """What the options of every kind of world have. Probabilities are per occasion, 0 to 1."""

    seed: int
    profile: str

    codec: bool = False
    """Pass every message through its bytes."""
    brokers: int
    topics: int
    partitions_max: int
    safety_ms: int
    """How long troubles and workload go on before the world is healed."""
    request_timeout_ms: int
    poll_pause_ms: int
    produce_every_ms: int
    """A batch of a few records, anywhere."""

    # the network
    delay_ms_max: int
    lose_request: float
    lose_response: float
    duplicate: float
    clog_every_ms: int
    partition_every_ms: int

    def describe(self) -> str:
        """``name=value`` of all, in the order of their definition."""
        return " ".join(f"{f.name}={getattr(self, f.name)}" for f in fields(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupParameters(Parameters):
    """What the options of every kind of world with members of groups have."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    max_poll_interval_ms: int
    resolve_ms_max: int
    unresolved: float
    """A metadata look-up leaves a topic out."""

    extra_heartbeats: bool = True
    """Whether members ask sooner than the interval while their assignment changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(GroupParameters):
    """Everything that differs between two runs of groups."""

    # sizes
    groups: int
    members: int
    """In each group at the start; the workload adds and removes some."""

    # the group
    assignment_interval_ms: int
    assignor: str
    """``uniform``, ``range`` or ``any``: each member has its own wish."""

    # the members
    static: float
    pattern: float
    auto_commit: float
    stall: float
    """After a poll: the application stops polling for up to twice the poll interval."""
    manual_commit: float
    callback_ms_max: int
    callback_failure: float

    # the coordinator
    crash_every_ms: int
    move_every_ms: int
    down_ms_max: int
    load_ms_max: int
    brokers: int = 1
    relocate_every_ms: int = 0
    """The group's partition gets another leader, and nothing else happens."""
    write_ms_max: int
    """How long a write takes; its answers wait for it, and a crash loses what was not written."""

    # the workload
    act_every_ms: int
    process_crash: float
    """Of the acts that end a process, those that end it without a word."""


_PROFILE_NAMES: Final = tuple(sorted(PROFILES))


def profile_of(seed: int) -> str:
    """The profiles take turns, so that any 5 seeds in a row have all."""
    return _PROFILE_NAMES[seed % len(_PROFILE_NAMES)]


class Dice:
    """Draws the options of a run."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng

    def probability(self, highest: float) -> float:
        """Nought in a third of the runs, else up to ``highest``, more often small than large."""
        value = self._rng.random()
        if value < 1 / 3:
            return 0.0
        return round(highest * ((value - 1 / 3) * 1.5) ** 2, 4)

    def between(self, low: int, high: int) -> int:
        """Both ends included."""
        return self._rng.randint(low, high)

    def period(self, shortest_ms: int) -> int:
        """0 (never) in a third of the runs, else the mean time between two occasions."""
        if self._rng.random() < 1 / 3:
            return 0
        return self._rng.randint(shortest_ms, shortest_ms * 6)


def draw_options(seed: int) -> Options:
    """The options of a seed."""
    dice = Dice(Random(f"{seed}/options"))
    session_ms = dice.between(SESSION_MS_MIN // 1_000, 45) * 1_000
    heartbeat_ms = min(dice.between(500, 5_000), session_ms // 3)
    return Options(
        seed=seed,
        profile=profile_of(seed),
        codec=dice.between(0, 9) == 0,
        groups=1 if dice.between(0, 3) else 2,
        members=dice.between(1, 5),
        topics=dice.between(1, 4),
        partitions_max=dice.between(1, 6),
        safety_ms=dice.between(60, 150) * 1_000,
        session_timeout_ms=session_ms,
        heartbeat_interval_ms=heartbeat_ms,
        assignment_interval_ms=(0, 0, 1_000, 1_000, 5_000)[dice.between(0, 4)],
        assignor=("uniform", "range", "any")[dice.between(0, 2)],
        static=dice.probability(1.0),
        pattern=dice.probability(1.0),
        auto_commit=(0.0, 0.5, 1.0)[dice.between(0, 2)],
        max_poll_interval_ms=dice.between(8, 60) * 1_000,
        request_timeout_ms=dice.between(2, 30) * 1_000,
        poll_pause_ms=dice.between(300, 3_000),
        stall=dice.probability(0.05),
        manual_commit=dice.probability(0.5),
        callback_ms_max=(0, 100, 2_000, 20_000)[dice.between(0, 3)],
        callback_failure=dice.probability(0.5),
        resolve_ms_max=(20, 1_000, 10_000)[dice.between(0, 2)],
        unresolved=dice.probability(0.8),
        delay_ms_max=(5, 50, 500, 5_000)[dice.between(0, 3)],
        lose_request=dice.probability(0.3),
        lose_response=dice.probability(0.3),
        duplicate=dice.probability(0.1) if dice.between(0, 3) == 0 else 0.0,
        clog_every_ms=dice.period(8_000),
        partition_every_ms=dice.period(10_000),
        crash_every_ms=dice.period(10_000),
        move_every_ms=dice.period(15_000),
        down_ms_max=dice.between(100, 15_000),
        load_ms_max=dice.between(0, 5_000),
        write_ms_max=(0, 10, 500)[dice.between(0, 2)],
        act_every_ms=dice.between(1_500, 15_000),
        process_crash=dice.probability(1.0),
        brokers=(1, 3)[dice.between(0, 1)],
        relocate_every_ms=dice.period(5_000),
        extra_heartbeats=dice.between(0, 4) > 0,
        produce_every_ms=dice.between(50, 800),
    )


AnyParameters = TypeVar("AnyParameters", bound=Parameters)


def with_changes(options: AnyParameters, changes: dict[str, str]) -> AnyParameters:
    """``options`` with some replaced, from text. Raises ``ConfigError`` for an unknown name or a
    value of another type."""
    typed: dict[str, int | float | str | bool] = {}
    for name, text in changes.items():
        if name not in {f.name for f in fields(options)}:
            raise ConfigError(f"no option {name!r}; there are {options.describe()}")
        old: object = getattr(options, name)
        try:
            if isinstance(old, bool):
                typed[name] = {"true": True, "false": False}[text.lower()]
            elif isinstance(old, int):
                typed[name] = int(text)
            elif isinstance(old, float):
                typed[name] = float(text)
            else:
                typed[name] = text
        except (KeyError, ValueError) as err:
            raise ConfigError(f"{name}={text}: not a {type(old).__name__}") from err
    return replace(options, **typed)  # type: ignore[arg-type]  # the types were checked above


def replaying(options: AnyParameters, drawn: AnyParameters) -> str:
    """What to say on the command line to see this very run, event by event."""
    changes = changes_of(options, drawn)
    set_them = "".join(f" --set {name}={value}" for name, value in changes.items())
    return f"--seed {options.seed}{set_them} --trace"


def changes_of(options: AnyParameters, drawn: AnyParameters) -> dict[str, object]:
    """What was replaced in the options that were drawn from their seed."""
    return {
        field.name: getattr(options, field.name)
        for field in fields(options)
        if getattr(options, field.name) != getattr(drawn, field.name)
    }
