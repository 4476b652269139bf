"""Options of ``MockBroker``, ``MockCluster``, ``BrokerThread``, ``ClusterThread``, the markers of
the pytest plugin, and ``kip848 mock``.

``BrokerOptions`` has the names that users write, ``CheckedOptions`` the checked values with
defaults.
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
    """Options of one or more brokers. All are optional."""

    profile: str | None
    """The Kafka release line to emulate, ``"4.0"`` to the newest. Default: the newest."""
    config: Mapping[str, str] | None
    """Broker settings by Kafka's names: ``{"group.consumer.assignment.interval.ms": "0"}``.
    Default: Kafka's defaults."""
    brokers: int
    """Number of brokers. Default: 1, or 3 for a ``MockCluster``."""
    racks: Sequence[str]
    """Racks, given to the brokers in turn. Default: no racks."""
    host: str
    """Address to listen on. Default: ``"127.0.0.1"``."""
    port: int
    """Port of the first broker; the others use the ports after it. Default: 0, any free ports."""
    listen: bool
    """Whether to listen at all; if not, the broker works in process only. Default: ``True``."""
    clock: Clock | None
    """Source of time. A ``VirtualClock`` moves only when ``advance`` is called. Default: real time.
    """
    new_uuid: Callable[[], bytes] | None
    """Returns 16 bytes for each new id. Default: random bytes."""
    security: SecurityOptions | None
    """Accounts, access control lists and further listeners (TLS, SASL). Default: none."""
    data_dir: str | os.PathLike[str] | None
    """Folder in which topics, settings, records and groups survive the process. Default: none."""
    fsync: str
    """When the data folder is synced to disk: ``"always"`` before any response, ``"second"`` once a
    second, ``"never"`` leaves it to the operating system. A killed process loses nothing with any
    of them. Default: ``"always"``."""
    events: str | os.PathLike[str] | None
    """File to which group coordinators append their events, one line of JSON per event
    (docs/reference/history.md), for ``kip848 report``. Default: none."""
    log_size: int
    """Number of requests that ``requests`` keeps. Default: 10,000."""
    check_ownership: bool
    """Whether leaving the ``async with`` block raises ``OwnershipViolation``. Default: ``True``."""
    assignors: Sequence[Assignor]
    """Server-side assignors of your own, besides Kafka's; members select them by name.
    ``group.consumer.assignors`` may list them too, also as ``module:Class``. Default: none."""
    draft_protocols: bool
    """Whether to offer the protocols of KIP-848 that no Kafka release has: assignments computed by
    members, and Connect groups. Default: ``True``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedOptions:
    """``BrokerOptions`` with defaults, checked. Created by ``of``."""

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
        """Check a user's options.

        Profiles, settings and data folders are checked later, where they are used.

        Raises:
            TypeError: For an unknown option.
            ConfigError: For an invalid value.
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
        """Raise ``ConfigError`` for an invalid value."""
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
        """``profile``, or the newest one. Raises ``ConfigError`` for an unknown profile."""
        return profile_named(DEFAULT_PROFILE if self.profile is None else self.profile)

    def a_clock(self) -> Clock:
        """``clock``, or a real one."""
        return self.clock or wall_clock()

    def uuids(self) -> Callable[[], bytes]:
        """``new_uuid``, or a source of random ids. Calling it raises ``ConfigError`` for anything
        but 16 bytes."""
        given = self.new_uuid

        def checked() -> bytes:
            found: object = None if given is None else given()
            if not isinstance(found, bytes) or len(found) != _UUID_BYTES:
                raise ConfigError(f"new_uuid returned {found!r}: expected {_UUID_BYTES} bytes")
            return found

        return _random_uuid if given is None else checked


def partition_counts(topics: object) -> Iterator[tuple[str, int]]:
    """The topics that a user gave, with their partition counts. Raises ``ConfigError`` for other
    types."""
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
