"""Bugs to plant in our broker, so that a test can see that the suite finds them.

``python -m tests.differential.planted BUG PROFILE [NAME=VALUE ...]`` is ``_mock_process`` with one
of the ``BUGS``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final

from kip848_client.core.assignors import BUILTIN
from kip848_client.core.wire.messages.fetch import FetchResponsePartitionData
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.fetching import fetches
from mock_coordinator.core.fetching.sessions import FetchKey, FetchSession
from mock_coordinator.core.groups.consumer import heartbeat
from mock_coordinator.core.groups.state import environment
from mock_coordinator.core.refused import Refused
from tests.differential import _mock_process

__all__ = ["BUGS"]


def _no_validation() -> None:
    """Requests that break the rules of KIP-848 are taken as they come."""
    heartbeat.__dict__.update(validate_heartbeat=lambda *_: None)


def _other_words() -> None:
    """Refusals say something else than Kafka does."""
    was = Refused.__init__

    def init(self: Refused, code: ErrorCode, message: str | None = None) -> None:
        was(self, code, None if message is None else f"{message}!")

    Refused.__init__ = init  # type: ignore[method-assign]  # that is the bug


def _other_assignor() -> None:
    """Whoever asks for the uniform assignor gets ranges."""
    environment.__dict__.update(BUILTIN={"uniform": BUILTIN["range"], "range": BUILTIN["range"]})


def _unfair_sessions() -> None:
    """Who delivers records stays where it is in its fetch session."""
    was = FetchSession.tell

    def tell(self: FetchSession, key: FetchKey, data: FetchResponsePartitionData) -> bool:
        order = list(self._partitions)
        news = was(self, key, data)
        self._partitions = {each: self._partitions[each] for each in order}
        return news

    FetchSession.tell = tell  # type: ignore[method-assign]  # that is the bug


def _impatient_fetches() -> None:
    """No fetch waits for records."""
    fetches.__dict__.update(_ends_waiting=lambda *_: True)


BUGS: Final[dict[str, tuple[str, Callable[[], None]]]] = {
    "no-validation": ("consumer", _no_validation),
    "other-words": ("consumer", _other_words),
    "other-assignor": ("consumer", _other_assignor),
    "unfair-sessions": ("sessions", _unfair_sessions),
    "impatient-fetches": ("sessions", _impatient_fetches),
}
"""By name: the kind of sequences that finds it, and how it is planted."""

if __name__ == "__main__":
    BUGS[sys.argv[1]][1]()
    _mock_process.main(sys.argv[2:])
