"""What aiokafka's inherited methods reach below them: the organs that ``kip848_client.aiokafka``
replaces have to have exactly this.

When the pin of aiokafka moves, a difference here says which organ to look at.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
from typing import Any
from unittest.mock import AsyncMock

import aiokafka
import pytest
from aiokafka.client import AIOKafkaClient
from aiokafka.producer.message_accumulator import BatchBuilder
from aiokafka.producer.producer import TransactionContext
from aiokafka.structs import ConsumerRecord, RecordMetadata

from kip848_client.aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from kip848_client.aiokafka._client import LinkedClient
from kip848_client.aiokafka._coordinator import Coordinator
from kip848_client.aiokafka._fetcher import Fetcher
from kip848_client.aiokafka._parents import TheirTransactionState
from kip848_client.aiokafka._sender import (
    _STATES,
    Accumulator,
    Routes,
    Sender,
    TransactionState,
)
from kip848_client.aiokafka._subscription import Assignment, PartitionState, Subscription
from kip848_client.consumer import Record
from kip848_client.core.produce import State
from kip848_client.producer import RecordMetadata as OurMetadata

INHERITED_BY_THE_CONSUMER = {
    "__aexit__": (),
    "__aiter__": (),
    "__anext__": ("getone",),
    "_validate_topics": (),
    "assign": ("_client.set_topics", "_coordinator.start_commit_offsets_refresh_task",
               "_subscription.assign_from_user", "_subscription.subscription.assignment"),
    "assignment": ("_subscription.assigned_partitions",),
    "beginning_offsets": ("_fetcher.beginning_offsets",),
    "commit": ("_coordinator.commit_offsets", "_subscription.subscription"),
    "committed": ("_coordinator.fetch_committed_offsets",),
    "end_offsets": ("_fetcher.end_offsets",),
    "getmany": ("_coordinator.check_errors", "_fetcher.fetched_records",
                "_subscription.fetch_context"),
    "getone": ("_coordinator.check_errors", "_fetcher.next_record", "_subscription.fetch_context"),
    "highwater": ("_subscription.is_assigned", "_subscription.subscription.assignment"),
    "last_poll_timestamp": ("_subscription.is_assigned", "_subscription.subscription.assignment"),
    "last_stable_offset": ("_subscription.is_assigned", "_subscription.subscription.assignment"),
    "offsets_for_times": ("_fetcher.get_offsets_by_times",),
    "pause": ("_subscription.pause",),
    "paused": ("_subscription.paused_partitions",),
    "resume": ("_subscription.resume",),
    "seek": ("_fetcher.seek_to",),
    "subscribe": ("_client.force_metadata_update", "_client.set_topics",
                  "_coordinator._metadata_snapshot", "_subscription.subscribe",
                  "_subscription.subscribe_pattern", "_subscription.subscription.topics",
                  "_validate_topics"),
    "subscription": ("_subscription.topics",),
    "topics": ("_client.fetch_all_metadata",),
    "unsubscribe": ("_client.set_topics", "_coordinator.maybe_leave_group",
                    "_subscription.unsubscribe"),
}  # fmt: skip

CALLED_BY_OURS = {"topics"}
"""Methods of ours that check the caller and then call aiokafka's."""

INHERITED_BY_THE_PRODUCER = {
    "__aexit__": (),
    "_ensure_transactional": ("_txn_manager.transactional_id",),
    "_serialize": ("_key_serializer", "_max_request_size", "_value_serializer"),
    "create_batch": ("_key_serializer", "_message_accumulator.create_builder",
                     "_value_serializer"),
    "flush": ("_message_accumulator.flush",),
    "send": ("_message_accumulator.add_message", "_partition", "_serialize",
             "_txn_manager.is_in_transaction", "client._wait_on_metadata"),
    "send_and_wait": ("send",),
    "send_batch": ("_message_accumulator.add_batch", "_partition",
                   "_txn_manager.is_in_transaction", "client._wait_on_metadata"),
    "start": ("_sender.start", "client.bootstrap"),
    "transaction": (),
}  # fmt: skip
SETTINGS_ALONE = {
    "_auto_commit_interval_ms", "_closed", "_group_id", "_loop", "_max_poll_records",
    "_request_timeout_ms", "_source_traceback",
}  # fmt: skip


def reached(method: Any) -> set[str]:
    """The longest chains of attributes of ``self`` in a method."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(method)))
    chains: set[str] = set()
    for node in ast.walk(tree):
        names: list[str] = []
        at = node
        while isinstance(at, ast.Attribute):
            names.insert(0, at.attr)
            at = at.value
        if names and isinstance(at, ast.Name) and at.id == "self":
            chains.add(".".join(names))
    inner = {one for one in chains for other in chains if other.startswith(one + ".")}
    return chains - inner


def test_what_the_producer_inherits() -> None:
    inherited = own(aiokafka.AIOKafkaProducer, AIOKafkaProducer) - {"__del__"}
    assert inherited == set(INHERITED_BY_THE_PRODUCER)


@pytest.mark.parametrize("name", INHERITED_BY_THE_PRODUCER)
def test_what_an_inherited_method_of_the_producer_reaches(name: str) -> None:
    found = reached(getattr(aiokafka.AIOKafkaProducer, name)) - SETTINGS_ALONE
    assert found - {"stop"} - ({"start"} - {name}) == set(INHERITED_BY_THE_PRODUCER[name])


def test_a_partition_is_chosen_as_theirs_is() -> None:
    theirs, ours = aiokafka.AIOKafkaProducer._partition, AIOKafkaProducer._partition
    assert [*inspect.signature(theirs).parameters] == [*inspect.signature(ours).parameters]
    assert reached(theirs) == {
        "_metadata.available_partitions_for_topic",
        "_metadata.partitions_for_topic",
        "_partitioner",
    }
    assert "self._partitioner(serialized_key, all_partitions, available)" in inspect.getsource(
        theirs
    )


def test_the_state_of_transactions_has_a_name_of_theirs() -> None:
    for state in State:
        assert _STATES.get(state, state.name) in TheirTransactionState.__members__


def test_the_organs_of_the_producer_have_what_is_reached() -> None:
    for chains in INHERITED_BY_THE_PRODUCER.values():
        for chain in chains:
            organ, _, name = chain.partition(".")
            if organ in ORGANS_OF_THE_PRODUCER and name != "transactional_id":
                assert hasattr(ORGANS_OF_THE_PRODUCER[organ], name), chain


def test_a_transaction_as_a_block_looks_below_the_producer() -> None:
    source = inspect.getsource(TransactionContext)
    assert "self._producer._txn_manager.is_fatal_error()" in source
    assert hasattr(TransactionState, "is_fatal_error")


def test_a_batch_is_built_by_these_names() -> None:
    """``Batch`` keeps what is appended; aiokafka's builder says what fits."""
    append = inspect.getsource(BatchBuilder.append)
    assert "key_bytes, value_bytes = self._serialize(key, value)" in append
    assert reached(BatchBuilder.append) == {
        "_builder.append",
        "_closed",
        "_relative_offset",
        "_serialize",
        "close",
    }


def own(theirs: type, ours: type) -> set[str]:
    """The methods of aiokafka's class that ours does not have itself."""
    functions = {name for name, each in vars(theirs).items() if inspect.isfunction(each)}
    return functions - vars(ours).keys()


def test_what_the_consumer_inherits() -> None:
    inherited = own(aiokafka.AIOKafkaConsumer, AIOKafkaConsumer) - {"__del__", "_wait_topics"}
    assert inherited | CALLED_BY_OURS == set(INHERITED_BY_THE_CONSUMER)
    assert vars(AIOKafkaConsumer).keys() >= CALLED_BY_OURS


@pytest.mark.parametrize("name", INHERITED_BY_THE_CONSUMER)
def test_what_an_inherited_method_reaches(name: str) -> None:
    found = reached(getattr(aiokafka.AIOKafkaConsumer, name)) - SETTINGS_ALONE
    assert found - {"start", "stop"} == set(INHERITED_BY_THE_CONSUMER[name])


ORGANS: dict[str, type] = {
    "_client": LinkedClient,
    "_coordinator": Coordinator,
    "_fetcher": Fetcher,
    "_subscription": Subscription,
}
ORGANS_OF_THE_PRODUCER: dict[str, type] = {
    "_message_accumulator": Accumulator,
    "_metadata": Routes,
    "_sender": Sender,
    "_txn_manager": TransactionState,
    "client": LinkedClient,
}


def test_the_organs_have_what_is_reached() -> None:
    for chains in INHERITED_BY_THE_CONSUMER.values():
        for chain in chains:
            organ, _, name = chain.partition(".")
            if organ in ORGANS and name != "_metadata_snapshot":
                assert hasattr(ORGANS[organ], name.split(".")[0]), chain


def test_an_assignment_is_read_by_these_names() -> None:
    commit = inspect.getsource(aiokafka.AIOKafkaConsumer.commit)
    assert "offsets = assignment.all_consumed_offsets()" in commit
    assert "if tp not in assignment.tps:" in commit
    assert "await self._coordinator.commit_offsets(assignment, offsets)" in commit
    for method, name in (
        (aiokafka.AIOKafkaConsumer.highwater, "highwater"),
        (aiokafka.AIOKafkaConsumer.last_stable_offset, "lso"),
        (aiokafka.AIOKafkaConsumer.last_poll_timestamp, "timestamp"),
    ):
        assert f"assignment.state_value(partition).{name}" in inspect.getsource(method)
        assert hasattr(PartitionState, name)
    assert hasattr(Assignment, "state_value")


def test_a_client_is_asked_by_these_names() -> None:
    """``LinkedClient`` replaces what would connect; the rest of theirs goes through that."""
    assert "_get_conn(" in inspect.getsource(AIOKafkaClient.ready)
    send = inspect.getsource(AIOKafkaClient.send)
    assert "self._conns[(node_id, group)].send(" in send
    assert "self._metadata_update(cluster_md, None)" in inspect.getsource(
        AIOKafkaClient.fetch_all_metadata
    )
    assert "self.force_metadata_update()" in inspect.getsource(AIOKafkaClient.add_topic)
    waiting = reached(AIOKafkaClient._wait_on_metadata)
    assert waiting == {
        "_request_timeout_ms",
        "_retry_backoff",
        "add_topic",
        "cluster.partitions_for_topic",
        "cluster.unauthorized_topics",
        "force_metadata_update",
    }
    settings = {"_bootstrap_servers", "_client_id", "_loop", "_topics", "_conns", "cluster"}
    assert settings <= reached(AIOKafkaClient.__init__) | {"cluster"}


def test_their_records_are_made_of_ours() -> None:
    assert [each.name for each in dataclasses.fields(ConsumerRecord)] == list(Record._fields)
    assert RecordMetadata._fields == OurMetadata._fields


@pytest.mark.parametrize("swapped", [AIOKafkaConsumer, AIOKafkaProducer])
def test_stand_ins_can_be_awaited_as_theirs(swapped: type[Any]) -> None:
    """Programs test with ``AsyncMock(spec=AIOKafkaConsumer)``."""
    theirs = AsyncMock(spec=swapped.__mro__[1])
    ours = AsyncMock(spec=swapped)
    for name in (each for each in dir(swapped.__mro__[1]) if not each.startswith("_")):
        awaited = isinstance(getattr(theirs, name), AsyncMock)
        assert isinstance(getattr(ours, name), AsyncMock) is awaited, name
