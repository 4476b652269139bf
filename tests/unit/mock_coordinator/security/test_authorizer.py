"""Who may do what: the rules of StandardAuthorizer, one by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kip848_client.errors import ConfigError
from mock_coordinator.core.security.acls import (
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    acls_from_data,
)
from mock_coordinator.core.security.authorizer import AclTable, Authorizer, operations_on

ALICE = "User:alice"
HOST = "10.0.0.1"
TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP


def acl(
    operation: Operation,
    name: str = "orders",
    *,
    prefixed: bool = False,
    deny: bool = False,
    principal: str = ALICE,
    host: str = "*",
    kind: ResourceType = TOPIC,
) -> Acl:
    return Acl(
        kind,
        name,
        PatternType.PREFIXED if prefixed else PatternType.LITERAL,
        principal,
        host,
        operation,
        Permission.DENY if deny else Permission.ALLOW,
    )


def may(
    *acls: Acl, operation: Operation = Operation.READ, name: str = "orders", **options: bool
) -> bool:
    authorizer = Authorizer(AclTable(acls), **options)  # type: ignore[arg-type]  # flags only
    return authorizer.allows(ALICE, HOST, operation, TOPIC, name)


def test_nothing_is_allowed_by_nobody() -> None:
    assert not may()


def test_everything_is_allowed_where_nothing_is_said_and_the_broker_is_told_so() -> None:
    assert may(allow_if_no_acl=True)
    bob = acl(Operation.WRITE, principal="User:bob")
    assert not may(bob, allow_if_no_acl=True), "something is said, if only about somebody else"
    other = acl(Operation.READ, "payments", principal="User:bob")
    assert may(other, allow_if_no_acl=True)


def test_a_super_user_may_do_what_is_denied() -> None:
    authorizer = Authorizer(
        AclTable([acl(Operation.ALL, deny=True)]), super_users=frozenset({ALICE})
    )
    assert authorizer.allows(ALICE, HOST, Operation.WRITE, TOPIC, "orders")


@pytest.mark.parametrize(
    ("granted", "prefixed", "asked", "allowed"),
    [
        ("orders", False, "orders", True),
        ("orders", False, "orders-2", False),
        ("orders", True, "orders-2", True),
        ("orders", True, "order", False),
        ("*", False, "orders", True),
        ("*", True, "orders", False),
        ("*", True, "*orders", True),
    ],
)
def test_patterns(granted: str, prefixed: bool, asked: str, allowed: bool) -> None:
    assert may(acl(Operation.READ, granted, prefixed=prefixed), name=asked) is allowed


@pytest.mark.parametrize(
    ("granted", "implied"),
    [
        (Operation.READ, {Operation.DESCRIBE}),
        (Operation.WRITE, {Operation.DESCRIBE}),
        (Operation.DELETE, {Operation.DESCRIBE}),
        (Operation.ALTER, {Operation.DESCRIBE}),
        (Operation.CREATE, set()),
        (Operation.DESCRIBE, set()),
        (Operation.ALTER_CONFIGS, {Operation.DESCRIBE_CONFIGS}),
        (Operation.ALL, set(operations_on(TOPIC))),
    ],
)
def test_what_a_right_implies(granted: Operation, implied: set[Operation]) -> None:
    allowed = {each for each in operations_on(TOPIC) if may(acl(granted), operation=each)}
    assert allowed == (implied | {granted}) - {Operation.ALL}


def test_a_denial_wins_and_implies_nothing() -> None:
    everything = acl(Operation.ALL, "*")
    denied = acl(Operation.READ, "ord", prefixed=True, deny=True)
    assert not may(everything, denied)
    assert may(everything, denied, operation=Operation.DESCRIBE)
    assert may(everything, denied, name="payments")
    assert not may(everything, acl(Operation.ALL, deny=True), operation=Operation.DESCRIBE)


def test_principals_and_hosts() -> None:
    assert may(acl(Operation.READ, principal="User:*"))
    assert not may(acl(Operation.READ, principal="User:bob"))
    assert may(acl(Operation.READ, host=HOST))
    assert not may(acl(Operation.READ, host="10.0.0.2"))


def test_a_right_to_a_topic_is_none_to_a_group_of_that_name() -> None:
    authorizer = Authorizer(AclTable([acl(Operation.READ)]))
    assert not authorizer.allows(ALICE, HOST, Operation.READ, GROUP, "orders")


def test_operations_as_bits() -> None:
    table = AclTable([acl(Operation.READ), acl(Operation.ALTER_CONFIGS)])
    bits = Authorizer(table).operations(ALICE, HOST, TOPIC, "orders")
    assert bits == 1 << 3 | 1 << 8 | 1 << 10 | 1 << 11
    everyone = Authorizer(AclTable([acl(Operation.ALL)]))
    assert everyone.operations(ALICE, HOST, TOPIC, "orders") == 3576


@pytest.mark.parametrize(
    ("acls", "allowed"),
    [
        ((), False),
        ((acl(Operation.WRITE, "anything"),), True),
        ((acl(Operation.READ, "anything"),), False),
        ((acl(Operation.ALL, "any", prefixed=True),), True),
        ((acl(Operation.WRITE, "*"),), True),
        ((acl(Operation.WRITE, "*"), acl(Operation.WRITE, "*", deny=True)), False),
        ((acl(Operation.WRITE, "ab"), acl(Operation.WRITE, "ab", deny=True)), False),
        ((acl(Operation.WRITE, "abc"), acl(Operation.WRITE, "ab", deny=True)), True),
        (
            (acl(Operation.WRITE, "abc"), acl(Operation.WRITE, "ab", prefixed=True, deny=True)),
            False,
        ),
        (
            (
                acl(Operation.WRITE, "abc", prefixed=True),
                acl(Operation.WRITE, "abc", deny=True),
            ),
            True,
        ),
        ((acl(Operation.WRITE, "x", principal="User:bob"),), False),
        ((acl(Operation.WRITE, "x", host="10.0.0.2"),), False),
    ],
)
def test_a_right_to_any_topic(acls: tuple[Acl, ...], allowed: bool) -> None:
    authorizer = Authorizer(AclTable(acls))
    assert authorizer.allows_any(ALICE, HOST, Operation.WRITE, TOPIC) is allowed


names = st.sampled_from(["a", "ab", "abc", "b", "*"])
entries = st.builds(
    Acl,
    st.just(TOPIC),
    names,
    st.sampled_from(list(PatternType)),
    st.sampled_from([ALICE, "User:bob", "User:*"]),
    st.sampled_from(["*", HOST]),
    st.sampled_from([Operation.ALL, Operation.READ, Operation.WRITE, Operation.DESCRIBE]),
    st.sampled_from(list(Permission)),
)


@given(st.lists(entries, max_size=8), names)
def test_the_table_finds_what_a_walk_through_all_entries_finds(acls: list[Acl], name: str) -> None:
    def covers(entry: Acl) -> bool:
        if entry.pattern_type is PatternType.PREFIXED:
            return name.startswith(entry.name)
        return entry.name in (name, "*")

    found = list(AclTable(acls).covering(TOPIC, name))
    expected = {entry for entry in acls if covers(entry)}
    assert set(found) == expected


@given(st.lists(entries, max_size=8), entries)
def test_adding_and_removing_leaves_no_trace(acls: list[Acl], more: Acl) -> None:
    table = AclTable(entry for entry in acls if entry != more)
    before = list(table)
    table.add(more)
    table.add(more)
    assert len(table) == len(before) + 1
    table.remove(more)
    assert list(table) == before
    assert more not in list(table.covering(TOPIC, more.name))


def test_entries_from_data() -> None:
    read, cluster = acls_from_data(
        [
            {
                "principal": ALICE,
                "operation": "read",
                "resource_type": "topic",
                "name": "orders",
                "pattern_type": "prefixed",
            },
            {
                "principal": "User:*",
                "operation": "DESCRIBE",
                "resource_type": "CLUSTER",
                "permission": "DENY",
                "host": HOST,
            },
        ]
    )
    assert read == acl(Operation.READ, prefixed=True)
    assert (cluster.name, cluster.host) == ("kafka-cluster", HOST)
    assert cluster.permission is Permission.DENY


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"principal": ALICE, "operation": "FLY", "resource_type": "TOPIC", "name": "t"},
        {"principal": ALICE, "operation": "READ", "resource_type": "SHOP", "name": "t"},
        {"principal": ALICE, "operation": "READ", "resource_type": "TOPIC"},
        {"principal": "alice", "operation": "READ", "resource_type": "TOPIC", "name": "t"},
        {"principal": ALICE, "operation": "READ", "resource_type": "TOPIC", "naem": "t"},
    ],
)
def test_what_is_no_entry(entry: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        acls_from_data([entry])
