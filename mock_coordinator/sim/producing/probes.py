"""Rare paths of producing that the fixed seeds must reach, by name; see ``sim.probes``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["PRODUCE_PROBES"]

PRODUCE_PROBES: Final[Mapping[str, str]] = {
    "duplicate request": "the network delivered a request twice",
    "a broker stopped": "with what was on its way to it",
    "a leader moved": "of a partition that is written to",
    "older batches forgotten": "a new leader knew of each producer the newest batch alone",
    "a coordinator moved": "of transactions or of groups",
    "a request refused": "a node said that it could not at the moment",
    "an answer refused late": "a node said so of what it had done",
    "a client throttled": "a quota was used up",
    "a batch split": "a broker found it too large",
    "a record too large": "for the topic, even alone",
    "a batch in doubt": "it is unknown whether its records are written",
    "no room": "the budget of memory was used up",
    "a commit": "was reported",
    "an abort": "was reported",
    "a commit refused": "because something of the transaction was",
    "a commit in doubt": "its answer was not there in time",
    "a commit asked again": "by a user who had given it up",
    "a doubt settled": "by asking again",
    "a doubt never settled": "its producer had failed",
    "a transaction timed out": "and its producer went on",
    "offsets refused": "the group did not know the member",
    "offsets twice": "others were sent in the same transaction",
    "a producer fenced": "another one had taken its transactional id",
    "a producer failed": "for another reason",
    "a crash": "a process died without a word",
    "a close": "a producer was closed, perhaps within a transaction",
    "a sleep": "a process stood still",
    "brokers anew": "a producer went back to its bootstrap servers",
    "turned down": "the driver refused something that was to be part of a transaction",
    "a rival": "two processes had one transactional id at once",
    "transactions V1": "partitions were added by requests of their own",
    "transactions V2": "they were added by writing",
}
"""Every probe, and what having reached it means."""
