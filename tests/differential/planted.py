"""Bugs to plant in our broker, so that a test can see that the suite finds them.

``python -m tests.differential.planted BUG PROFILE [NAME=VALUE ...]`` is ``_mock_process`` with one
of the ``BUGS``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final

from kip848_client.assignors import BUILTIN
from kip848_client.error_codes import ErrorCode
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


BUGS: Final[dict[str, Callable[[], None]]] = {
    "no-validation": _no_validation,
    "other-words": _other_words,
    "other-assignor": _other_assignor,
}
"""By name."""

if __name__ == "__main__":
    BUGS[sys.argv[1]]()
    _mock_process.main(sys.argv[2:])
