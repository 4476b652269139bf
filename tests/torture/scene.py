"""What harm is done to, and what a kind of harm is."""

from __future__ import annotations

import enum
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from tests.support.tcp_proxy import TcpProxy
from tests.torture.brokers import Brokers, RealBrokers
from tests.torture.chronicle import Chronicle
from tests.torture.processes import Processes

__all__ = ["Kind", "Lane", "Scene"]


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything there is, and what has been done to it."""

    processes: Processes
    brokers: Brokers
    killed: RealBrokers | None = None
    """The same brokers, if they may be killed."""
    proxy: TcpProxy | None = None
    """If clients can be cut from them."""
    chronicle: Chronicle = field(default_factory=Chronicle)


class Lane(enum.Enum):
    """In each of them one thing is done after the other; the lanes go on side by side."""

    PROCESSES = "processes"
    BROKERS = "brokers"
    NETWORK = "network"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of harm."""

    lane: Lane
    do: Callable[[Scene, random.Random], Awaitable[None]]
    in_torture: bool = True
    """Or in the chaos run only."""
