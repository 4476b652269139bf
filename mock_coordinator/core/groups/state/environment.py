"""What a decision needs besides the request, and what it returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Final, Generic, TypeVar

from kip848_client.core.assignors import BUILTIN, Assignor
from kip848_client.core.wire._fields import Message
from kip848_client.errors import ConfigError
from mock_coordinator.core.groups.records.state_records import StateRecord
from mock_coordinator.core.groups.state.classic_live import LiveGroup
from mock_coordinator.core.groups.state.groups_state import GroupsState
from mock_coordinator.core.groups.state.timers import Timer, Timers
from mock_coordinator.core.inputs import ClientInfo, RequestReceived
from mock_coordinator.core.profile import Profile
from mock_coordinator.core.settings.broker_config import BrokerConfig
from mock_coordinator.core.topics.catalog import Catalog

__all__ = ["Decision", "Environment", "TimerChange", "configured_assignors"]

R_co = TypeVar("R_co", covariant=True)
S = TypeVar("S")

_ATTEMPTS: Final = 1000
_CLASS_NAMES: Final = {
    "org.apache.kafka.coordinator.group.assignor.UniformAssignor": "uniform",
    "org.apache.kafka.coordinator.group.assignor.RangeAssignor": "range",
}


@dataclass(frozen=True, slots=True)
class Environment:
    """Everything that a decision may read. Nothing in here may be changed while deciding."""

    profile: Profile
    config: BrokerConfig
    catalog: Catalog
    state: GroupsState
    timers: Timers
    assignors: dict[str, Assignor]
    """by the name that members ask for, the default one first"""
    random_id: Callable[[], str]
    """base64 of a random UUID"""

    def new_member_id(self) -> str:
        """What Kafka's ``Uuid.randomUuid`` gives: no dash at its beginning, which command lines
        take for an option. Ids of the classic protocol are not drawn by it (``classic/join.py``).
        """
        for _ in range(_ATTEMPTS):
            drawn = self.random_id()
            if not drawn.startswith("-"):
                return drawn
        raise RuntimeError(f"new_uuid returned {_ATTEMPTS} ids that begin with a dash")


@dataclass(frozen=True, slots=True)
class TimerChange:
    """Arm a timer, or cancel it (``deadline_ms`` None)."""

    timer: Timer
    deadline_ms: int | None
    payload: int = 0


@dataclass(frozen=True, slots=True)
class Resolution:
    """The regexes of a group that are to be matched with topics that a client may describe."""

    group_id: str
    regexes: tuple[str, ...]
    client: ClientInfo


@dataclass(slots=True)
class Decision(Generic[R_co]):
    """The answer to a request and what has to happen before it is given: records are applied in
    order, then timers are changed, then what no record carries."""

    response: R_co
    records: list[StateRecord] = field(default_factory=list)
    timers: list[TimerChange] = field(default_factory=list)
    metadata_checked: str | None = None
    """The group whose topics were compared with the catalog."""
    simple_group: str | None = None
    """A group to create in memory if it does not exist: for a commit that stored nothing."""
    resolve: Resolution | None = None
    """Regexes to resolve once the request is done."""
    live: tuple[str, LiveGroup] | None = None
    """A classic group and what is going on in it from now on; no record carries that."""
    forget: str | None = None
    """A group that Kafka forgets without writing it down (see ``GroupsState.forget``)."""
    replies: list[tuple[RequestReceived, Message]] = field(
        default_factory=list["tuple[RequestReceived, Message]"]
    )
    """Answers to requests that were waiting."""

    def answering(self, response: S) -> Decision[S]:
        """The same, with another answer."""
        answered = Decision(response)
        for each in fields(self):
            if each.name != "response":
                setattr(answered, each.name, getattr(self, each.name))
        return answered


def configured_assignors(config: BrokerConfig) -> dict[str, Assignor]:
    """The assignors of ``group.consumer.assignors``, by short name.

    Raises ``ConfigError`` for one that neither Kafka bundles nor the user gave: Java classes cannot
    be loaded here.
    """
    chosen: dict[str, Assignor] = {}
    for configured in config.listing("group.consumer.assignors"):
        own = config.assignors.get(configured)
        if own is not None:
            chosen[own.name] = own
            continue
        name = _CLASS_NAMES.get(configured, configured)
        if name not in BUILTIN:
            known = ", ".join((*BUILTIN, *config.assignors))
            raise ConfigError(
                f"group.consumer.assignors: unknown assignor {configured!r}, known: {known}; "
                "pass your own to the broker with assignors=[...], or name it as module:Class"
            )
        chosen[name] = BUILTIN[name]
    return chosen
