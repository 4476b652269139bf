"""What a broker serves in a fetch session, for every broker that tests and benchmarks make up."""

from __future__ import annotations

from kip848_client.core.fetch import FetchIntent, Wanted
from kip848_client.core.types import TopicIdPartition

__all__ = ["take_in"]


def take_in(session: dict[TopicIdPartition, Wanted], intent: FetchIntent) -> None:
    """Note what a request says: a full one begins the session anew, the others change it."""
    if intent.session_epoch <= 0:
        session.clear()
    session.update({each.key: each for each in intent.add})
    for key in intent.forget:
        session.pop(key, None)
