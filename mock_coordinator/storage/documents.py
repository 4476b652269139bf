"""Converts a cluster, except its records, to documents and back.

Keys: ``cluster`` (ids, brokers and counters), ``settings`` (altered at runtime), ``broker/ID``
(altered for one of several brokers), ``topic/ID`` (hex; with the replicas and the leader of each
partition), ``group/ID`` (settings of a group), ``scram``, ``quotas``, ``acls``.

Folders of format 1 also have ``transaction/ID``, the state of a transactional id, which is now in
the records of ``__transaction_state``.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from kip848_client.core.types import TopicId
from mock_coordinator.core.security.acls import (
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from mock_coordinator.core.security.authorizer import AclTable
from mock_coordinator.core.security.scram_store import ScramCredential
from mock_coordinator.core.state.broker import Disk
from mock_coordinator.core.topics.catalog import Topic
from mock_coordinator.core.transaction_coordinator.records import (
    ClientVersion,
    TransactionLog,
    TransactionMetadata,
    TransactionState,
)

__all__ = [
    "documents_of",
    "old_transactions",
    "restore_documents",
    "stored_brokers",
    "topic_key",
]

_TOPIC: Final = "topic/"
_GROUP: Final = "group/"
_BROKER: Final = "broker/"
_TRANSACTION: Final = "transaction/"


def documents_of(disk: Disk) -> dict[str, Any]:
    """All of them, by key."""
    config = disk.config
    found: dict[str, Any] = {
        "cluster": {
            "cluster_id": disk.cluster_id,
            "profile": config.profile.name,
            "catalog_version": disk.catalog.version,
            "next_producer_id": disk.producer_ids_taken,
            "brokers": list(disk.nodes.ids),
        },
        "settings": {
            "broker": dict(config.broker_overrides),
            "cluster": dict(config.cluster_overrides),
        },
        "scram": {user: [_scram(c) for c in disk.scram.of(user)] for user in disk.scram.users},
        "quotas": [[entity, dict(own)] for entity, own in disk.quotas.quotas.items()],
    }
    if disk.security.authorizer is not None:
        found["acls"] = [list(asdict(acl).values()) for acl in disk.security.authorizer.table]
    for number, topic in enumerate(disk.catalog.topics.values()):
        found[topic_key(topic.topic_id)] = _topic(disk, topic, number)
    for node_id, own in disk.configs.items():
        if own is not config and own.broker_overrides:
            found[_BROKER + str(node_id)] = dict(own.broker_overrides)
    for group_id in config.groups_with_overrides:
        found[_GROUP + group_id] = dict(config.group_overrides(group_id))
    return found


def _topic(disk: Disk, topic: Topic, number: int) -> dict[str, Any]:
    disk.leaders.of(topic, topic.partitions - 1, disk.replication_factor(topic.name))
    starts: dict[str, int] = {}
    for index in range(topic.partitions):
        log = disk.logs.known(topic.topic_id, index)
        if log is not None and log.log_start_offset:
            starts[str(index)] = log.log_start_offset
    return {
        "number": number,
        "name": topic.name,
        "partitions": topic.partitions,
        "config": dict(topic.config),
        "internal": topic.internal,
        "created_ms": topic.created_ms,
        "starts": starts,
        "placement": topic.placement,
        "leaders": [
            [state.leader, state.leader_epoch, list(state.replicas)]
            for state in disk.leaders.placed(topic.topic_id)
        ],
    }


def _scram(credential: ScramCredential) -> dict[str, Any]:
    fields = asdict(credential)
    return {
        name: base64.b64encode(value).decode() if isinstance(value, bytes) else value
        for name, value in fields.items()
    }


def topic_key(topic_id: TopicId) -> str:
    """The key of a topic's document, which is gone when the topic is."""
    return _TOPIC + topic_id.hex()


def stored_brokers(documents: Mapping[str, Any]) -> tuple[int, ...]:
    """The ids of the brokers whose data this is; format 1 does not say."""
    return tuple(documents["cluster"].get("brokers", ()))


def old_transactions(documents: Mapping[str, Any]) -> list[TransactionLog]:
    """What format 1 says of transactional ids. Raises as ``restore_documents``."""
    return [
        _transaction(key.removeprefix(_TRANSACTION), doc)
        for key, doc in documents.items()
        if key.startswith(_TRANSACTION)
    ]


def restore_documents(disk: Disk, documents: Mapping[str, Any]) -> None:
    """Make an empty disk what the documents say; the logs of topics are filled by the caller.

    Raises ``KeyError``, ``TypeError`` or ``ValueError`` for documents that make no sense, and
    ``ConfigError`` for settings that the profile does not take.
    """
    cluster = documents["cluster"]
    disk.cluster_id = cluster["cluster_id"]
    disk.next_producer_id = cluster["next_producer_id"]
    topics = [(key, doc) for key, doc in documents.items() if key.startswith(_TOPIC)]
    for key, doc in sorted(topics, key=lambda each: int(each[1]["number"])):
        topic = disk.catalog.create(
            doc["name"],
            doc["partitions"],
            TopicId(bytes.fromhex(key.removeprefix(_TOPIC))),
            config=doc["config"],
            internal=doc["internal"],
            created_ms=doc["created_ms"],
        )
        if doc.get("leaders"):
            disk.leaders.restore(topic, doc["placement"], doc["leaders"])
    version = max(disk.catalog.version, cluster["catalog_version"])
    disk.catalog.version = disk.catalog.created_version = version
    disk.catalog.take_changes()
    settings = documents["settings"]
    disk.config.replace_overrides(broker=settings["broker"], cluster=settings["cluster"])
    for key, doc in documents.items():
        if key.startswith(_GROUP):
            disk.config.set_group_overrides(key.removeprefix(_GROUP), doc)
        elif key.startswith(_BROKER):
            disk.configs[int(key.removeprefix(_BROKER))].replace_overrides(broker=doc)
    for user, credentials in documents["scram"].items():
        for credential in credentials:
            disk.scram.put(user, _credential(credential))
    for entity, quotas in documents["quotas"]:
        disk.quotas.alter(tuple((kind, name) for kind, name in entity), quotas)
    if disk.security.authorizer is not None and "acls" in documents:
        disk.security.authorizer.table = AclTable(_acl(*fields) for fields in documents["acls"])


def _transaction(transactional_id: str, doc: Mapping[str, Any]) -> TransactionLog:
    fields = dict(doc)
    fields["state"] = TransactionState(fields["state"])
    fields["client_version"] = ClientVersion(fields["client_version"])
    fields["partitions"] = tuple((topic, partition) for topic, partition in fields["partitions"])
    return TransactionLog(transactional_id, TransactionMetadata(**fields))


def _credential(doc: Mapping[str, Any]) -> ScramCredential:
    return ScramCredential(
        doc["mechanism"],
        doc["iterations"],
        *(base64.b64decode(doc[name]) for name in ("salt", "stored_key", "server_key")),
    )


def _acl(
    resource_type: int,
    name: str,
    pattern_type: int,
    principal: str,
    host: str,
    operation: int,
    permission: int,
) -> Acl:
    return Acl(
        ResourceType(resource_type),
        name,
        PatternType(pattern_type),
        principal,
        host,
        Operation(operation),
        Permission(permission),
    )
