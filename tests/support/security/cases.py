"""What every request is answered to every principal: a matrix, to be played on any broker.

A case makes its request for a principal, with names of its own where the request changes something,
so that the order of principals does not matter. Cases that change topics come last."""

from __future__ import annotations

from typing import Final

from tests.support.security.administration import ADMINISTRATION_CASES
from tests.support.security.groups import GROUP_CASES
from tests.support.security.prepared import Case
from tests.support.security.producing import PRODUCING_CASES
from tests.support.security.topics import LAST_CASES, TOPIC_CASES

__all__ = ["CASES"]

CASES: Final[tuple[Case, ...]] = (
    *TOPIC_CASES,
    *PRODUCING_CASES,
    *GROUP_CASES,
    *ADMINISTRATION_CASES,
    *LAST_CASES,
)
