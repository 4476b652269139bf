"""Rare paths of fetching that the fixed seeds must reach, by name; see ``sim.probes``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["FETCH_PROBES"]

FETCH_PROBES: Final[Mapping[str, str]] = {
    "duplicate request": "the network delivered a request twice",
    "a request refused as a whole": "a fetch had a top-level error",
    "a partition refused": "a fetch had an error of a partition",
    "a full fetch throttled": "a quota was used up before a session was open",
    "an incremental fetch throttled": "and within a session",
    "a session evicted": "a broker forgot a session",
    "a broker stopped": "with its sessions",
    "OFFSET_OUT_OF_RANGE at a follower": "a replica lagged behind",
    "OFFSET_OUT_OF_RANGE at the leader": "the position was not in the log",
    "a diverging epoch": "the log of a broker differed from what was read",
    "a preferred replica": "the leader named one",
    "a commit": "a transaction was committed",
    "a transaction aborted": "its records were never handed out under read_committed",
    "records deleted": "the start of a log moved",
    "a log compacted": "records and batches were thinned out",
    "a log cut": "an unclean election lost records",
    "a topic deleted": "and mostly made again",
    "damaged records": "a checksum was wrong",
    "an error told": "a partition was stopped",
    "an act between two records": "the user paused, sought or lost a partition while it read",
    "the client began anew": "from its bootstrap servers",
    "a seek cancelled": "the user gave up while offsets were looked up",
    "a look-up failed": "offsets were not found in time",
    "a look-up was withdrawn": "who asked for offsets does not wait for them any more",
    "committed offsets not found out": "the coordinator did not answer",
    "a reset": "a position was out of range, and the policy chose another",
    "a truncation": "a position was behind a cut, and reported again",
}
"""Every probe, and what having reached it means."""
