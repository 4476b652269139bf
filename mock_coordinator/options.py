"""The options of a broker, said once: for ``MockBroker``, ``MockCluster``, ``BrokerThread``,
``ClusterThread``, the markers of the pytest plugin and ``kip848 mock``.

``BrokerOptions`` are the names that a user may write, ``CheckedOptions`` what has become of them,
with their defaults.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, TypedDict, cast

from kip848_client.core.assignors import Assignor
from kip848_client.core.secrets import shown_setting
from kip848_client.errors import ConfigError
from mock_coordinator.core.profile import Profile
from mock_coordinator.core.profiles import DEFAULT_PROFILE, profile_named
from mock_coordinator.driver.clock import Clock, wall_clock
from mock_coordinator.security.options import SecurityOptions

__all__ = ["BrokerOptions", "CheckedOptions", "partition_counts"]

_UUID_BYTES: Final = 16
_FORMER_NAMES: Final = {"client_assignors": "draft_protocols"}
"""Type checkers point to the new name; test suites that say the old one go on."""
_PORTS: Final = 65_536


class BrokerOptions(TypedDict, total=False):
    """Every option of a broker, or of several. All may be left out."""

    profile: str | None
    """The Kafka line to be, ``"4.0"`` to the newest, which is the default."""
    config: Mapping[str, str] | None
    """Kafka's broker settings by name: ``{"group.consumer.assignment.interval.ms": "0"}``."""
    brokers: int
    """How many brokers there are; 1, and 3 for a ``MockCluster``."""
    racks: Sequence[str]
    """The racks that the brokers are in, in turn; none."""
    host: str
    """Where to listen; ``"127.0.0.1"``."""
    port: int
    """Where the first broker listens, the others at the ports behind it; 0: any free ones."""
    listen: bool
    """Whether to listen at all, or to work in process only; ``True``."""
    clock: Clock | None
    """What gives the time; with a ``VirtualClock`` only ``advance`` moves it. Real time."""
    new_uuid: Callable[[], bytes] | None
    """What gives 16 bytes for each fresh id; random ones."""
    security: SecurityOptions | None
    """Accounts, access control lists and further listeners (TLS, SASL); none."""
    data_dir: str | os.PathLike[str] | None
    """A folder in which topics, settings, records and groups survive the process; none."""
    fsync: str
    """When these are on the disk: ``"always"`` (the default) before any answer, ``"second"``,
    or ``"never"``: when the operating system likes. A killed process never loses anything."""
    events: str | os.PathLike[str] | None
    """A file at whose end group coordinators write what they see of their groups, a line of JSON
    an event (docs/reference/history.md), for ``kip848 report``; none."""
    log_size: int
    """How many requests ``requests`` remembers; 10,000."""
    check_ownership: bool
    """Whether leaving the ``async with`` block raises ``OwnershipViolation``; ``True``."""
    assignors: Sequence[Assignor]
    """Server-side assignors of your own, beside Kafka's; members ask for them by their names. In
    ``group.consumer.assignors`` they may be named, too, also as ``module:Class``; none."""
    draft_protocols: bool
    """Whether there is what no Kafka offers, both after the text of KIP-848: assignments that
    members compute, and Connect groups; ``True``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedOptions:
    """``BrokerOptions`` with their defaults. ``of`` makes them."""

    profile: str | None = None
    config: Mapping[str, str] | None = None
    brokers: int = 1
    racks: Sequence[str] = ()
    host: str = "127.0.0.1"
    port: int = 0
    listen: bool = True
    clock: Clock | None = None
    new_uuid: Callable[[], bytes] | None = None
    security: SecurityOptions | None = None
    data_dir: str | os.PathLike[str] | None = None
    fsync: str = "always"
    events: str | os.PathLike[str] | None = None
    log_size: int = 10_000
    check_ownership: bool = True
    assignors: Sequence[Assignor] = ()
    draft_protocols: bool = True

    @classmethod
    def of(cls, options: BrokerOptions) -> CheckedOptions:
        """Options as a user gave them.

        Raises ``TypeError`` for a name that is no option, ``ConfigError`` for a value that cannot
        be meant. What settings, profiles and data folders may be is judged by those who use them.
        """
        known = [each.name for each in fields(cls)]
        given = {_FORMER_NAMES.get(name, name): value for name, value in options.items()}
        for name in given:
            if name not in known:
                near = difflib.get_close_matches(name, known, n=3)
                hint = (
                    f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(known)}"
                )
                raise TypeError(f"unknown broker option {name!r}; {hint}")
        return cls(**cast("BrokerOptions", given))

    def __post_init__(self) -> None:
        """Raise ``ConfigError`` for what cannot be meant."""
        for name in ("listen", "check_ownership", "draft_protocols"):
            _require(name, getattr(self, name), bool, "True or False")
        _require("profile", self.profile, str | None, "a Kafka release line as a string")
        for name in ("host", "fsync"):
            _require(name, getattr(self, name), str, "a string")
        _require_number("brokers", self.brokers, 1, _PORTS)
        _require_number("port", self.port, 0, _PORTS - 1)
        _require_number("log_size", self.log_size, 0)
        if self.port and self.port + self.brokers > _PORTS:
            raise ConfigError(f"port = {self.port}: not enough ports for {self.brokers} brokers")
        racks = cast("Sequence[object]", self.racks)  # whatever a user gave
        if isinstance(racks, str) or not all(isinstance(each, str) for each in racks):
            raise ConfigError(f"racks = {self.racks!r}: expected a list of names")
        assignors = cast("object", self.assignors)
        if isinstance(assignors, str) or not isinstance(assignors, Sequence):
            raise ConfigError(f"assignors = {assignors!r}: expected a list of assignors")
        _require("config", self.config, Mapping | None, "settings by name")
        _require("data_dir", self.data_dir, str | os.PathLike | None, "the path of a folder")
        _require("events", self.events, str | os.PathLike | None, "the path of a file")
        for name, what in (("clock", "the time in ms"), ("new_uuid", f"{_UUID_BYTES} bytes")):
            value = getattr(self, name)
            if value is not None and not callable(value):
                raise ConfigError(f"{name} = {value!r}: expected a function that returns {what}")
        if not isinstance(cast("object", self.security), SecurityOptions | None):
            raise ConfigError(  # without the value, which may have passwords
                f"security is a {type(self.security).__name__}: expected SecurityOptions "
                "(SecurityOptions.from_data reads plain data)"
            )

    @property
    def folder(self) -> Path | None:
        """``data_dir`` as a path."""
        return None if self.data_dir is None else Path(self.data_dir)

    def a_profile(self) -> Profile:
        """``profile``, or the newest. Raises ``ConfigError`` for one that does not exist."""
        return profile_named(DEFAULT_PROFILE if self.profile is None else self.profile)

    def a_clock(self) -> Clock:
        """``clock``, or one of real time."""
        return self.clock or wall_clock()

    def uuids(self) -> Callable[[], bytes]:
        """``new_uuid``, or random ones. Raises ``ConfigError`` when called and it gives no id."""
        given = self.new_uuid

        def checked() -> bytes:
            found: object = None if given is None else given()
            if not isinstance(found, bytes) or len(found) != _UUID_BYTES:
                raise ConfigError(f"new_uuid returned {found!r}: expected {_UUID_BYTES} bytes")
            return found

        return _random_uuid if given is None else checked


def partition_counts(topics: object) -> Iterator[tuple[str, int]]:
    """What a user said about topics. Raises ``ConfigError`` for a list of names, among others."""
    if topics is None:
        return
    if not isinstance(topics, Mapping):
        raise ConfigError(f"topics = {topics!r}: expected a mapping of names to partition counts")
    for name, partitions in cast("Mapping[object, object]", topics).items():
        if not isinstance(name, str) or not isinstance(partitions, int):
            raise ConfigError(f"topics: {name!r}: {partitions!r} is not a partition count")
        yield name, partitions


def _require(name: str, value: object, kind: Any, what: str) -> None:
    if not isinstance(value, kind):
        raise ConfigError(f"{name} = {shown_setting(name, value)}: expected {what}")


def _require_number(name: str, value: object, low: int, high: int | None = None) -> None:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    number = cast("int", value)
    if not is_number or number < low or (high is not None and number > high):
        bounds = f"of at least {low}" if high is None else f"between {low} and {high}"
        raise ConfigError(f"{name} = {value!r}: expected a number {bounds}")


def _random_uuid() -> bytes:
    return os.urandom(_UUID_BYTES)
