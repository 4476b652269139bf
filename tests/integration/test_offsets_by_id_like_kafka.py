"""TxnOffsetCommit names topics by id from version 6 on (Kafka 4.4). What of ids that nobody has?"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import closing
from typing import Any, Final

import pytest

from kip848_client.error_codes import ErrorCode as E
from mock_coordinator.core.profiles import PROFILES
from tests.integration.test_transactions_like_kafka import MockSide, started
from tests.support.raw_transactions import Producer, RawTransactions

pytestmark = [pytest.mark.timeout(120)]

BY_NAME, BY_ID = 5, 6
TOPIC: Final = "t"
_STRANGER: Final = ("nobody", 3)
_GONE: Final = ("gone", 0)
_THERE: Final = (TOPIC, 0)
_NO_PARTITION: Final = (TOPIC, 70)
_ZERO: Final = ("zero", 0)


class Asked:
    """One transaction, offsets that are committed with it, and what is left of it."""

    def __init__(self, raw: RawTransactions, name: str, version: int) -> None:
        self._raw = raw
        self._name = name
        self._version = version
        (code, _, _), self._producer = raw.init(name)
        assert code == 0

    def commit(
        self,
        *partitions: tuple[str, int],
        name: str | None = None,
        producer: Producer | None = None,
        member: tuple[str, int] = ("", -1),
    ) -> Any:
        """What is said of each, and the state of the transaction after it."""
        number, epoch = producer or (0, 0)
        answer = self._raw.txn_commit(
            name or self._name,
            (self._producer[0] + number, self._producer[1] + epoch),
            "g",
            dict.fromkeys(partitions, 1),
            self._version,
            member=member,
        )
        return tuple(code for _, _, code in answer), self._raw.describe(self._name)[0][2]


CASES: Final[dict[str, Callable[[Asked], Any]]] = {
    "unknown": lambda asked: asked.commit(_GONE),
    "unknown, and one that is there": lambda asked: asked.commit(_GONE, _THERE),
    "unknown, of a stranger to the group": lambda asked: asked.commit(_GONE, member=_STRANGER),
    "both, of a stranger": lambda asked: asked.commit(_GONE, _THERE, member=_STRANGER),
    "unknown, of an old epoch": lambda asked: asked.commit(_GONE, producer=(0, -1)),
    "unknown, of another producer id": lambda asked: asked.commit(_GONE, producer=(999, 0)),
    "unknown, of no transactional id": lambda asked: asked.commit(_GONE, name="nobody"),
    "no such partition": lambda asked: asked.commit(_NO_PARTITION),
    "no name or id": lambda asked: asked.commit(_ZERO),
}


def expected(missing: E) -> dict[str, Any]:
    """What is answered where a topic that is not there is said to be ``missing``."""
    alone = ((missing,), "Empty")
    return {
        "unknown": alone,
        "unknown, and one that is there": ((missing, 0), "Ongoing"),
        "unknown, of a stranger to the group": alone,
        "both, of a stranger": ((missing, E.UNKNOWN_MEMBER_ID), "Ongoing"),
        "unknown, of an old epoch": alone,
        "unknown, of another producer id": alone,
        "unknown, of no transactional id": alone,
        "no such partition": ((E.UNKNOWN_TOPIC_OR_PARTITION,), "Empty"),
        "no name or id": alone,
    }


MISSING: Final = {BY_NAME: E.UNKNOWN_TOPIC_OR_PARTITION, BY_ID: E.UNKNOWN_TOPIC_ID}


def check(raw: RawTransactions, profile: str) -> None:
    for version, missing in MISSING.items():
        if version > PROFILES[profile].api_versions["TxnOffsetCommit"][1]:
            continue
        found = {
            case: ask(Asked(raw, f"x-{version}-{number}", version))
            for number, (case, ask) in enumerate(CASES.items())
        }
        assert found == expected(missing), version


def _ids(topic_id: bytes) -> dict[str, bytes]:
    return {TOPIC: topic_id, "gone": uuid.uuid4().bytes, "zero": bytes(16)}


@pytest.mark.real_kafka
def test_kafka(kafka_version: str) -> None:
    with started(kafka_version) as kafka:
        ids = _ids(bytes(kafka.create_topic(TOPIC, 1)))
        with closing(RawTransactions(kafka.connect, ids)) as raw:
            check(raw, kafka.profile)


@pytest.mark.parametrize("profile", PROFILES)
def test_the_bundled_broker(profile: str) -> None:
    side = MockSide(profile, TOPIC)
    check(RawTransactions(side.connect, _ids(side.topic_ids()[TOPIC])), profile)
