"""What an old epoch is answered: when its transaction has timed out, or when it has a successor.

The producer stands on these answers, those to InitProducerId above all: they are how it finds out
which of the two it is. So they are asked of real brokers, of both versions of transactions, before
and after the coordinator was started anew, and the bundled one has to give the same.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any, Final

import pytest

from kip848_client.core.wire import api_named
from kip848_client.error_codes import ErrorCode as E
from mock_coordinator import options
from mock_coordinator.core.profiles import profile_named
from tests.integration.test_transactions_like_kafka import CONFIGS, MockSide
from tests.support.raw_transactions import Producer, RawTransactions
from tests.support.real_kafka import RealKafka

pytestmark = [pytest.mark.timeout(300)]

TOPIC: Final = "t"
_SHORT_MS: Final = (200, 1_000, 5_000)
"""Timeouts of transactions that shall time out, not before something is written: a busy machine
gets more time for it."""
_PATIENCE_S: Final = 20
_AT_A_TIME: Final = 12
levels = pytest.mark.parametrize("level", [1, 2])

Epoch = int
Ask = Callable[[RawTransactions, str, Producer], Any]


def _next(producer: Producer) -> Producer:
    return producer[0], producer[1] + 1


def _init(raw: RawTransactions, name: str, producer: Producer = (-1, -1)) -> Producer | int:
    """InitProducerId until it is answered; the producer, or the error."""
    for _ in _patiently():
        (code, _, _), got = raw.init(name, producer=producer)
        if code != E.CONCURRENT_TRANSACTIONS:
            return got if code == 0 else code
    raise AssertionError("InitProducerId is not answered")


def _epoch(found: Producer | int) -> Any:
    return found if isinstance(found, int) else ("epoch", found[1])


def _ended(raw: RawTransactions, name: str, producer: Producer, *, commit: bool) -> Any:
    (code, _, epoch), _ = raw.end(name, producer, commit=commit)
    return code or ("epoch", epoch)


ASKS: Final[dict[str, Ask]] = {
    "Produce v12": lambda raw, x, p: raw.produce(x, p, 1, {(TOPIC, 0): [b"late"]}, 12)[0][2],
    "Produce v11": lambda raw, x, p: raw.produce(x, p, 1, {(TOPIC, 0): [b"late"]}, 11)[0][2],
    "AddPartitionsToTxn": lambda raw, x, p: raw.add_partitions(x, p, [(TOPIC, 0)])[1][0][3],
    "AddOffsetsToTxn": lambda raw, x, p: raw.add_offsets(x, p, "g"),
    "TxnOffsetCommit v5": lambda raw, x, p: raw.txn_commit(x, p, "g", {(TOPIC, 0): 1}, 5)[0][2],
    "TxnOffsetCommit v4": lambda raw, x, p: raw.txn_commit(x, p, "g", {(TOPIC, 0): 1}, 4)[0][2],
    "EndTxn v5, commit": lambda raw, x, p: _ended(raw, x, p, commit=True),
    "EndTxn v5, abort": lambda raw, x, p: _ended(raw, x, p, commit=False),
    "EndTxn v3, commit": lambda raw, x, p: raw.end(x, p, commit=True, version=3)[0][0],
    "EndTxn v3, abort": lambda raw, x, p: raw.end(x, p, commit=False, version=3)[0][0],
    "InitProducerId": lambda raw, x, p: _epoch(_init(raw, x, p)),
    "InitProducerId, next epoch": lambda raw, x, p: _epoch(_init(raw, x, _next(p))),
}


class Situations:
    """How an epoch becomes old. Each gives a transactional id and the old producer."""

    def __init__(self, level: int, wait_out: Callable[[RawTransactions, str], None]) -> None:
        self._level = level
        self._wait_out = wait_out
        self._numbers = itertools.count()

    def make(self, name: str, raw: RawTransactions) -> tuple[str, Producer]:
        """This one."""
        made: tuple[str, Producer] = getattr(self, name)(raw)
        return made

    def _begin(self, raw: RawTransactions, timeout_ms: int = 60_000) -> tuple[str, Producer]:
        name = f"x{next(self._numbers)}"
        (code, _, _), producer = raw.init(name, timeout_ms)
        assert code == 0
        return name, producer

    def _write(self, raw: RawTransactions, name: str, producer: Producer, level: int) -> None:
        code = self._written(raw, name, producer, level)
        assert code == 0, f"not written: {code}"

    def _written(self, raw: RawTransactions, name: str, producer: Producer, level: int) -> int:
        if level == 1:
            assert raw.add_partitions(name, producer, [(TOPIC, 0)])[1][0][3] == 0
        version = 12 if level == 2 else 11
        code = -1
        for _ in _patiently():
            code = raw.produce(name, producer, 0, {(TOPIC, 0): [b"v"]}, version)[0][2]
            if code in (0, E.INVALID_PRODUCER_EPOCH):
                break
        return code

    def timed_out(self, raw: RawTransactions) -> tuple[str, Producer]:
        """It was open for too long."""
        for timeout_ms in _SHORT_MS:
            name, old = self._begin(raw, timeout_ms)
            if self._written(raw, name, old, self._level) == 0:
                self._wait_out(raw, name)
                return name, old
        raise AssertionError("it always timed out before anything was written")

    def timed_out_and_succeeded(self, raw: RawTransactions) -> tuple[str, Producer]:
        """And then somebody else took the id, and had a transaction."""
        name, old = self.timed_out(raw)
        successor = _init(raw, name)
        assert isinstance(successor, tuple)
        self._write(raw, name, successor, self._level)
        raw.end(name, successor, commit=True, version=5 if self._level == 2 else 3)
        raw.settle(name)
        return name, old

    def succeeded_while_open(self, raw: RawTransactions) -> tuple[str, Producer]:
        """Somebody else took the id during the transaction."""
        name, old = self._begin(raw)
        self._write(raw, name, old, self._level)
        assert isinstance(_init(raw, name), tuple)
        return name, old

    def succeeded_while_idle(self, raw: RawTransactions) -> tuple[str, Producer]:
        """No transaction was open."""
        name, old = self._begin(raw)
        assert isinstance(_init(raw, name), tuple)
        return name, old

    def succeeded_by_v1(self, raw: RawTransactions) -> tuple[str, Producer]:
        """So it was, and the successor has committed by the requests of V1."""
        name, old = self._begin(raw)
        successor = _init(raw, name)
        assert isinstance(successor, tuple)
        self._write(raw, name, successor, 1)
        assert raw.end(name, successor, commit=True, version=3)[0][0] == 0
        raw.settle(name)
        return name, old


def _patiently() -> Iterator[None]:
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        yield
        time.sleep(0.02)


_FENCED: Final[dict[str, Any]] = {
    "Produce v12": E.INVALID_PRODUCER_EPOCH,
    "Produce v11": E.INVALID_PRODUCER_EPOCH,
    "AddPartitionsToTxn": E.PRODUCER_FENCED,
    "AddOffsetsToTxn": E.PRODUCER_FENCED,
    "TxnOffsetCommit v5": E.INVALID_PRODUCER_EPOCH,
    "TxnOffsetCommit v4": E.INVALID_PRODUCER_EPOCH,
    "EndTxn v5, commit": E.PRODUCER_FENCED,
    "EndTxn v5, abort": E.PRODUCER_FENCED,
    "EndTxn v3, commit": E.PRODUCER_FENCED,
    "EndTxn v3, abort": E.PRODUCER_FENCED,
    "InitProducerId": E.PRODUCER_FENCED,
    "InitProducerId, next epoch": E.PRODUCER_FENCED,
}
"""With a successor that came while a transaction was open, or after it had timed out: it is two
epochs further on, and nothing that the old one asks is heard."""
_TIMED_OUT_AND_FORGOTTEN: Final = {
    **_FENCED,
    "EndTxn v5, commit": E.INVALID_TXN_STATE,
    "EndTxn v5, abort": ("epoch", 1),
    "InitProducerId, next epoch": ("epoch", 2),
}
"""V1, or another coordinator: InitProducerId with our own epoch is answered as by a successor. The
next epoch is nobody's."""
_AFTER_RESTART: Final = tuple(ask for ask in ASKS if ask.startswith(("EndTxn v5", "Init")))
"""What may depend on what a coordinator has in memory alone."""

EXPECTED: Final[dict[str, dict[str, Any]]] = {
    "timed_out": _TIMED_OUT_AND_FORGOTTEN,
    "timed_out_and_succeeded": _FENCED,
    "succeeded_while_open": _FENCED,
    # whoever has had no transaction must not ask with the next epoch: it is the successor's
    "succeeded_while_idle": {**_FENCED, "InitProducerId, next epoch": ("epoch", 2)},
    # what Kafka takes for the repetition of a request: it does not ask how the epoch was raised
    "succeeded_by_v1": {
        **_FENCED,
        "EndTxn v5, commit": ("epoch", 1),
        "EndTxn v5, abort": E.INVALID_TXN_STATE,
        "InitProducerId, next epoch": ("epoch", 2),
    },
}


def expected(situation: str, level: int, *, restarted: bool) -> dict[str, Any]:
    """What Kafka answers."""
    answers = EXPECTED[situation]
    if situation == "timed_out" and level == 2 and not restarted:
        return {**answers, "InitProducerId": ("epoch", 1)}
    return answers


def check(
    level: int,
    connected: Callable[[], RawTransactions],
    wait_out: Callable[[RawTransactions, str], None],
    restart: Callable[[], None],
    *,
    at_a_time: int = 1,
) -> None:
    """Ask everything twice: of a coordinator that has seen it, and of one that was started anew.

    ``at_a_time`` situations are made side by side: most of them wait.
    """
    situations = Situations(level, wait_out)

    def make(wanted: tuple[str, str]) -> tuple[str, Producer]:
        with closing(connected()) as raw:
            return situations.make(wanted[0], raw)

    for restarted in (False, True):
        asks = _AFTER_RESTART if restarted else tuple(ASKS)
        pairs = list(itertools.product(EXPECTED, asks))
        with ThreadPoolExecutor(at_a_time) as pool:
            made = dict(zip(pairs, pool.map(make, pairs), strict=True))
        if restarted:
            restart()
        with closing(connected()) as raw:
            for situation in EXPECTED:
                answers = {ask: ASKS[ask](raw, *made[situation, ask]) for ask in asks}
                wanted = expected(situation, level, restarted=restarted)
                assert answers == {ask: wanted[ask] for ask in asks}, situation


@pytest.mark.real_kafka
@levels
def test_kafka(kafka_version: str, level: int) -> None:
    features = {"transaction.version": 1} if level == 1 else None
    configs = {**CONFIGS, "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100"}
    with RealKafka.start(kafka_version, configs, features=features) as kafka:
        ids = {TOPIC: bytes(kafka.create_topic(TOPIC, 1))}
        _await_transactions(kafka)

        def restart() -> None:
            kafka.restart()
            kafka.await_topic(TOPIC, 1)
            _await_transactions(kafka)

        check(
            level,
            lambda: RawTransactions(kafka.connect, ids),
            lambda raw, name: raw.settle(name, until="CompleteAbort"),
            restart,
            at_a_time=_AT_A_TIME,
        )


def _await_transactions(kafka: RealKafka) -> None:
    find = api_named("FindCoordinator").request(key_type=1, coordinator_keys=("warm-up",))
    with kafka.connect() as connection, closing(RawTransactions(kafka.connect, {})) as raw:
        for _ in _patiently():
            found = connection.request(find, 4).coordinators[0]
            if found.error_code == 0 and raw.init("warm-up")[0][0] == 0:
                return
    raise AssertionError("the transaction coordinator does not come up")


@levels
@pytest.mark.parametrize("profile", ["4.0", "4.4"])
def test_the_bundled_broker(profile: str, level: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        options, "profile_named", lambda name: profile_named(name).at_transaction_version(level)
    )
    side = MockSide(profile, TOPIC)
    ids = side.topic_ids()
    check(
        level,
        lambda: RawTransactions(side.connect, ids),
        lambda _, name: side.wait_out(name),
        side.broker.restart,
    )
