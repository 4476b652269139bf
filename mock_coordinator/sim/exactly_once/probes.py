"""Rare paths of processing exactly once that the fixed seeds must reach, by name; see
``sim.probes``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mock_coordinator.sim.probes import PROBES
from mock_coordinator.sim.producing.probes import PRODUCE_PROBES

__all__ = ["ALL_PROBES", "PROCESS_PROBES"]

PROCESS_PROBES: Final[Mapping[str, str]] = {
    "processed": "a transaction was committed, with its offsets",
    "offsets alone": "a transaction of records that came to nothing was committed",
    "records in vain": "a transaction was aborted, and its records were read again",
    "revoked while open": "the group asked for a partition back during a transaction with it",
    "revocation given up": "the wait for a partition to be given up ended",
    "lost while open": "a partition was lost during a transaction with it",
    "a doubt": "the outcome of a commit was not known in time",
    "a zombie woke up": "a process slept until its member was removed",
    "fenced": "a processor ended because another one had its transactional id",
    "ended by its function": "a function raised, and there was nowhere to put the record",
    "a dead letter": "a record that a function cannot process was put aside",
    "an output refused": "an output could not be sent",
    "killed": "a process died without a word",
    "stopped": "a processor was stopped in good order",
    "cut short": "records in hand were left for later",
    "sleep": "a process stood still",
    "rival processor": "two processes had one transactional id at once",
    "one more": "a processor came",
    "one less": "a processor went for good",
}
"""Every probe of these worlds, and what having reached it means."""

ALL_PROBES: Final[Mapping[str, str]] = {**PROBES, **PRODUCE_PROBES, **PROCESS_PROBES}
"""With those of the parts, which these worlds need not reach."""
