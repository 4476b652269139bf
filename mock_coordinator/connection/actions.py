"""What a connection's driver must do; ``mock_coordinator.connection`` says how."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TypeAlias

from mock_coordinator.core.inputs import RequestReceived

__all__ = ["Action", "Close", "Signal", "Submit", "Write"]


# Not frozen: two of these are made for each request, and a frozen one takes three times as long.


@dataclass(slots=True)
class Submit:
    """Take a request to the broker. It is always the last action of its call."""

    received: RequestReceived


@dataclass(slots=True)
class Write:
    """Send these bytes, and say ``taken`` when the client has taken all of them."""

    data: bytes


class Signal(enum.Enum):
    """Actions that say everything by their name."""

    PAUSE = "read nothing more for now"
    RESUME = "read again"
    NEXT_TURN = "call ``proceed`` in the next round of the event loop, after others had their turn"
    SET_TIMER = "``deadline_ms`` is earlier than it was"


@dataclass(frozen=True, slots=True)
class Close:
    """Close the connection, whatever is not written.

    ``why`` is for the log, behind "connection from HOST:PORT closed: "; ``None``: the client left
    in good order, which is worth no line. ``is_expected``: neither side made a mistake.
    """

    why: str | None = None
    is_expected: bool = False


Action: TypeAlias = Submit | Write | Signal | Close
