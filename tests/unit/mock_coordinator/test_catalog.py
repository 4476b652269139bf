"""Topics: identity by id, and what is said about changes."""

from __future__ import annotations

import pytest

from kip848_client.core.types import TopicId
from mock_coordinator.core.topics.catalog import Catalog

ID = TopicId(b"1" * 16)
OTHER = TopicId(b"2" * 16)


def test_a_topic_is_found_by_name_and_by_id() -> None:
    catalog = Catalog()
    topic = catalog.create("a", 3, ID, config={"retention.ms": "1"}, created_ms=5)
    assert catalog.topic("a") is topic
    assert catalog.topic_by_id(bytes(ID)) is topic
    assert catalog.topic("b") is None
    assert catalog.topic_by_id(OTHER) is None
    assert (topic.partitions, topic.config, topic.created_ms) == (3, {"retention.ms": "1"}, 5)


@pytest.mark.parametrize(("name", "topic_id"), [("a", OTHER), ("b", ID), ("b", TopicId(bytes(16)))])
def test_names_and_ids_are_unique(name: str, topic_id: TopicId) -> None:
    catalog = Catalog()
    catalog.create("a", 1, ID)
    with pytest.raises(ValueError, match=r"already exists|zero or in use"):
        catalog.create(name, 1, topic_id)
    assert catalog.names == ("a",)


def test_changes_are_told_once_in_order() -> None:
    catalog = Catalog()
    catalog.create("b", 1, ID)
    catalog.create("a", 1, OTHER)
    catalog.grow("b", 2)
    changes = catalog.take_changes()
    assert changes is not None
    assert changes.names == ("b", "a")
    assert changes.deleted == ()
    assert catalog.take_changes() is None
    version = catalog.version
    gone = catalog.delete("a")
    assert catalog.version > version
    changes = catalog.take_changes()
    assert changes is not None
    assert (changes.names, changes.deleted) == (("a",), (gone,))


@pytest.mark.parametrize("count", [-1, 0, 2])
def test_a_topic_only_grows(count: int) -> None:
    catalog = Catalog()
    catalog.create("a", 2, ID)
    with pytest.raises(ValueError, match="partitions already"):
        catalog.grow("a", count)
    assert catalog.topics["a"].partitions == 2


def test_deleting_an_unknown_topic_is_an_error() -> None:
    with pytest.raises(KeyError):
        Catalog().delete("a")
