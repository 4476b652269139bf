"""Offsets and transactions: requests that name nothing, or something twice."""

from __future__ import annotations

from typing import Any

from tests.support.odd_requests.talk import Talk

__all__ = ["add_partitions_oddly", "commit_oddly", "fetch_offsets_oddly", "write_markers_oddly"]

Topics = list[dict[str, Any]]

_LONG = "x" * 5000
_WITHOUT_AN_ANSWER = {
    "a partition twice",
    "a partition twice in one of two",
    "one, then one without partitions",
}
"""Markers for which Kafka waits for ever."""


def _offset(index: int, offset: int = 5, metadata: str = "") -> dict[str, Any]:
    return {"partition_index": index, "committed_offset": offset, "committed_metadata": metadata}


def _commits(talk: Talk, *, by_id: bool) -> dict[str, Topics]:
    def topic(name: str, *partitions: dict[str, Any]) -> dict[str, Any]:
        return talk.topic(name, by_id=by_id, partitions=list(partitions))

    two = topic("two", _offset(0), _offset(0, 6), _offset(1))
    again, one = topic("two", _offset(0, 7)), topic("one", _offset(0))
    no = topic("no", _offset(1))
    return {
        "nothing": [],
        "no partitions": [topic("two"), topic("no")],
        "some without partitions": [two, topic("one"), again, topic("two")],
        "unknown ones without partitions": [two, topic("no"), again],
        "no name": [topic("", _offset(0))],
        "twice": [two, one, again],
        "twice and unknown": [two, no, one, again, no],
        "twice and an unknown partition": [topic("two", _offset(0), _offset(7)), one, again],
        "unknown ones twice": [no, no],
        "too long": [topic("two", _offset(0, 3, _LONG), _offset(1, 4, _LONG))],
        "twice, once too long": [topic("two", _offset(0, 3, _LONG), _offset(0, 4, "x"))],
        "negative": [topic("two", _offset(-1), _offset(0, -1), _offset(1, -2))],
    }


def commit_oddly(talk: Talk) -> None:
    """OffsetCommit by nobody and by a stranger, and TxnOffsetCommit in a transaction and out of
    it."""
    for version in talk.versions("OffsetCommit", 2, 8, 9, 10):
        for what, topics in _commits(talk, by_id=version >= 10).items():
            for group in ("g", ""):
                talk.ask(
                    f"{what} in {group!r}", "OffsetCommit", version, group_id=group, topics=topics
                )
            stranger: dict[str, Any] = {"member_id": "x", "generation_id_or_member_epoch": 5}
            talk.ask(what, "OffsetCommit", version, group_id="g", topics=topics, **stranger)
    begun = _begin(talk, "odd-commits")
    talk.quietly("AddOffsetsToTxn", 3, group_id="tg", transactional_id="odd-commits", **begun)
    for version in talk.versions("TxnOffsetCommit", 0, 3, 5, 6):
        for what, topics in _commits(talk, by_id=version >= 6).items():
            for transactional_id in ("odd-commits", "never begun"):
                talk.ask(
                    f"{what} in {transactional_id}",
                    "TxnOffsetCommit",
                    version,
                    group_id="tg",
                    transactional_id=transactional_id,
                    generation_id_or_member_epoch=-1,
                    topics=topics,
                    **begun,
                )


def _begin(talk: Talk, transactional_id: str) -> dict[str, Any]:
    answer = talk.quietly(
        "InitProducerId", 4, transactional_id=transactional_id, transaction_timeout_ms=60_000
    )
    return {"producer_id": answer.producer_id, "producer_epoch": answer.producer_epoch}


def fetch_offsets_oddly(talk: Talk) -> None:
    """OffsetFetch of a group with offsets, and of one without."""
    offsets = [{"name": "two", "partitions": [_offset(1, 3)]}]
    talk.quietly("OffsetCommit", 8, group_id="some", topics=offsets)
    for version in talk.versions("OffsetFetch", 1, 7, 8, 10):
        for group in ("some", "none"):
            for what, topics in _fetched(talk, by_id=version >= 10).items():
                asked: dict[str, Any] = {"group_id": group, "topics": topics}
                fields: dict[str, Any] = asked if version < 8 else {"groups": [asked]}
                talk.ask(f"{what} of {group}", "OffsetFetch", version, **fields)
    for version in talk.versions("OffsetFetch", 8, 9, 10):
        talk.ask("no groups", "OffsetFetch", version, groups=[], unanswered=True)  # by 4.0
        everything = {"group_id": "some", "topics": None}
        talk.ask("a group twice", "OffsetFetch", version, groups=[everything, everything])


def _fetched(talk: Talk, *, by_id: bool) -> dict[str, Topics]:
    def topic(name: str, *partitions: int) -> dict[str, Any]:
        return talk.topic(name, by_id=by_id, partition_indexes=list(partitions))

    return {
        "nothing": [],
        "no partitions": [topic("two"), topic("no")],
        "no name": [topic("", 0)],
        "impossible partitions": [topic("two", -1, 7)],
        "twice": [
            topic("two", 0, 0, 1),
            topic("no", 1),
            topic("one", 0),
            topic("two", 0),
            topic("no"),
        ],
    }


def add_partitions_oddly(talk: Talk) -> None:
    """AddPartitionsToTxn of clients and of brokers."""
    begun = _begin(talk, "odd-adds")
    none_of_two, none_of_no = {"name": "two", "partitions": []}, {"name": "no", "partitions": []}
    twice = [
        {"name": "two", "partitions": [0, 0, 1]},
        {"name": "one", "partitions": [0]},
        {"name": "two", "partitions": [1, 0]},
    ]
    lists: dict[str, Topics] = {
        "nothing": [],
        "no partitions": [none_of_two],
        "an unknown topic without partitions": [none_of_no],
        "twice": twice,
        "twice and unknown": [*twice, {"name": "no", "partitions": [5, 5]}, none_of_two],
    }
    for version in talk.versions("AddPartitionsToTxn", 0, 3):
        for what, topics in lists.items():
            for transactional_id in ("odd-adds", "never begun"):
                fields = {"transactional_id": transactional_id, **begun, "topics": topics}
                old: dict[str, Any] = {
                    f"v3_and_below_{name}": value for name, value in fields.items()
                }
                talk.ask(f"{what} to {transactional_id}", "AddPartitionsToTxn", version, **old)
    for version in talk.versions("AddPartitionsToTxn", 4, 5):
        talk.ask("no transactions", "AddPartitionsToTxn", version, transactions=[], unanswered=True)
        for verify in (True, False):
            for what, topics in lists.items():
                several = [
                    {"transactional_id": name, **begun, "verify_only": verify, "topics": topics}
                    for name in ("b", "odd-adds", "", "b")
                ]
                # brokers before 4.1 verify in an order of their own
                talk.ask(
                    f"{what}, verify only: {verify}",
                    "AddPartitionsToTxn",
                    version,
                    transactions=several,
                    shuffled=verify,
                )


def write_markers_oddly(talk: Talk) -> None:
    """WriteTxnMarkers: Kafka counts answers that it waits for, and may wait for ever."""

    def marker(*topics: tuple[str, list[int]], producer: int = 1, **more: int) -> dict[str, Any]:
        named = [{"name": name, "partition_indexes": indexes} for name, indexes in topics]
        fields = {"producer_id": producer, "producer_epoch": 0, "coordinator_epoch": 0, **more}
        return {**fields, "transaction_result": False, "topics": named}

    offsets = "__consumer_offsets"
    good, other = marker(("two", [0])), marker(("two", [1]))
    nothing = marker(("two", []), producer=2)
    requests = {
        "no markers": [],
        "no topics": [marker()],
        "no partitions": [nothing],
        "no partitions of an unknown topic": [marker(("no", []))],
        "twice no partitions": [nothing, marker(("two", []))],
        "names that cannot be": [marker(("", [0]), ("a b", [0]), ("two", [-1]))],
        "unknown ones twice": [marker(("no", [0, 0]))],
        "a producer twice": [good, other],
        "a producer twice, first without partitions": [marker(("two", [])), good],
        "one without partitions, then one": [nothing, good],
        "one, then one without partitions": [good, nothing],
        "a partition twice": [marker(("two", [0, 0]))],
        "a partition twice in one of two": [marker(("two", [0]), ("two", [0])), other],
        "offsets twice": [marker((offsets, [0, 0]))],
        "offsets that are not there": [marker((offsets, [7, 7]))],
        "offsets and others": [marker((offsets, [0, 0]), ("two", [1]))],
        "no epoch, twice": [marker(("two", [0, 0]), producer_epoch=-1)],
        "an old coordinator": [marker(("two", [0]), producer=9, coordinator_epoch=-1)],
        "many": [
            marker(("two", [0, 1]), ("one", [0]), producer=producer)
            for producer in (17, 5, 1, 33, 100, 2, 99, 64, 1 << 33)
        ],
    }
    for what, markers in requests.items():
        unanswered = what in _WITHOUT_AN_ANSWER
        talk.ask(what, "WriteTxnMarkers", 1, markers=markers, unanswered=unanswered)
