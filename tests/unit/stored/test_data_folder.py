"""A data folder of an earlier state of the repository is read by today's broker."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kip848_client.core.wire.messages.transactions import InitProducerIdRequest
from mock_coordinator import MockBroker
from tests.support.stored import FIXTURES
from tests.support.stored import data_folder as stored


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[MockBroker]:
    """On a copy."""
    broker = stored.opened(Path(shutil.copytree(FIXTURES / stored.FOLDER, tmp_path / "data")))
    yield broker
    broker.close()


def test_the_records_are_there(broker: MockBroker) -> None:
    assert broker.core.broker.catalog.topics[stored.TOPIC].topic_id == stored.TOPIC_ID
    for partition, values in stored.PRODUCED.items():
        assert [each.value for each in broker.records(stored.TOPIC, partition)] == values
    assert broker.produce(stored.TOPIC, b"e") == len(stored.PRODUCED[0])


def test_the_group_is_there(broker: MockBroker) -> None:
    group = broker.snapshot(stored.GROUP)
    assert group is not None
    assert [*group.members] == [stored.MEMBER]
    (offsets,) = group.offsets.values()
    assert {number: each.offset for number, each in offsets.items()} == {0: stored.COMMITTED}


def test_the_transactional_id_is_there(broker: MockBroker) -> None:
    """Its producer gets the next epoch of the same id."""
    asked = InitProducerIdRequest(
        transactional_id=stored.TRANSACTION, transaction_timeout_ms=60_000
    )
    answer = broker.connect().ask(asked, 4)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (0, 0, 1)


def test_the_same_requests_give_the_same_bytes(tmp_path: Path) -> None:
    stored.make(tmp_path)
    made, kept = (folder / stored.FOLDER / "data" for folder in (tmp_path, FIXTURES))
    assert made.read_bytes() == kept.read_bytes()
