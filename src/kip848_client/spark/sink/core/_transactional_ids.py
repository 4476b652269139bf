"""The transactional ids of tasks: ``NAME-RUN-PARTITION-ATTEMPT``. Pure; no other module knows the
form.

``NAME`` is the query's ``kafka.transactional.id`` and may have hyphens. ``RUN`` tells the runs of a
query apart: a driver aborts what an earlier run has left open, and never what another query has.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["is_of", "run_of", "transactional_id", "with_label", "without_name"]

_RUN_DIGITS: Final = 12
_RUN: Final = rf"[0-9a-f]{{{_RUN_DIGITS}}}"


def run_of(uuid_hex: str) -> str:
    """The run in a transactional id, for Spark's id of the run (a UUID in hexadecimal digits)."""
    return uuid_hex[:_RUN_DIGITS]


def transactional_id(name: str, run: str, partition: int, attempt: int) -> str:
    """The transactional id of one attempt of a task."""
    return with_label(name, run, f"{partition}-{attempt}")


def with_label(name: str, run: str, label: str) -> str:
    """The transactional id with this label (``PARTITION-ATTEMPT``)."""
    return f"{name}-{run}-{label}"


def without_name(name: str, run: str, transactional_id: str) -> str:
    """The label of a transactional id of this run: a decision is stored with many of them."""
    return transactional_id.removeprefix(f"{name}-{run}-")


def is_of(name: str, run: str | None, transactional_id: str) -> bool:
    """Whether this is the transactional id of a task of the query with this name, in this run or,
    if it is ``None``, in any. One name may be a prefix of another."""
    which = _RUN if run is None else re.escape(run)
    return re.fullmatch(rf"{re.escape(name)}-{which}-\d+-\d+", transactional_id) is not None
