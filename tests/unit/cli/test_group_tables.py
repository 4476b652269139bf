"""Tables of ``kip848 groups`` are those that kafka-consumer-groups of Kafka 4.3.1 has printed on
Kafka 4.4.0 (beside a real one: ``tests/integration/test_admin_like_kafka.py``)."""

from __future__ import annotations

from dataclasses import replace

from kip848_client import TopicPartition
from kip848_client.admin import (
    CommittedOffset,
    GroupDescription,
    GroupListing,
    MemberDescription,
    Node,
)
from kip848_client.cli.groups.core import _views as views

LONG = "a-topic-with-a-very-long-name"
FIRST = MemberDescription(
    member_id="JJIAFy5iE9NyilELeyzjKA",
    instance_id=None,
    client_id="first",
    host="/127.0.0.1",
    assignment=(
        TopicPartition(LONG, 0),
        TopicPartition("orders", 0),
        TopicPartition("orders", 1),
    ),
    target_assignment=(
        TopicPartition(LONG, 0),
        TopicPartition("orders", 0),
        TopicPartition("orders", 1),
    ),
    epoch=3,
)
SECOND = MemberDescription(
    member_id="k0UdO9_gwLREc7GD5IAkGg",
    instance_id="inst-2",
    client_id="second",
    host="/127.0.0.1",
    assignment=(TopicPartition("orders", 2), TopicPartition("orders", 3)),
    target_assignment=(TopicPartition("orders", 2), TopicPartition("orders", 3)),
    epoch=3,
)
BILLING = GroupDescription(
    group_id="billing",
    type="Consumer",
    state="Stable",
    assignor="uniform",
    coordinator=Node(1, "127.0.0.1", 60129),
    members=(SECOND, FIRST),
    group_epoch=3,
    target_assignment_epoch=3,
)
EMPTIED = replace(BILLING, group_id="emptied", state="Empty", members=())
OLD_MEMBER = MemberDescription(
    member_id="aiokafka-0.14.0-01379b41-5e62-4291-8a1d-7165afc23ecd",
    instance_id=None,
    client_id="aiokafka-0.14.0",
    host="/127.0.0.1",
    assignment=tuple(TopicPartition("orders", number) for number in range(4)),
)
OLD = GroupDescription(
    group_id="old-style",
    type="Classic",
    state="Stable",
    assignor="roundrobin",
    coordinator=Node(1, "127.0.0.1", 60129),
    members=(OLD_MEMBER,),
)


def lines(*each: str) -> list[str]:
    """A bar where a line ends with blanks that an editor might take away."""
    return [line.removesuffix("|") for line in each]


def test_offsets_of_a_group_with_members() -> None:
    orders = [TopicPartition("orders", number) for number in range(4)]
    committed = {
        TopicPartition(LONG, 0): CommittedOffset(0),
        orders[0]: CommittedOffset(3, 0),
        orders[1]: CommittedOffset(3, 0),
        orders[2]: CommittedOffset(0),
        orders[3]: CommittedOffset(0),
    }
    ends = {TopicPartition(LONG, 0): 0, **dict.fromkeys(orders, 3)}
    found = views.group_offsets(BILLING, committed, ends)
    assert views.offsets_table(found, verbose=False).plain() == lines(
        "GROUP           TOPIC                         PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  "
        "LAG             CONSUMER-ID            HOST            CLIENT-ID",
        "billing         a-topic-with-a-very-long-name 0          0               0               "
        "0               JJIAFy5iE9NyilELeyzjKA /127.0.0.1      first",
        "billing         orders                        0          3               3               "
        "0               JJIAFy5iE9NyilELeyzjKA /127.0.0.1      first",
        "billing         orders                        1          3               3               "
        "0               JJIAFy5iE9NyilELeyzjKA /127.0.0.1      first",
        "billing         orders                        2          0               3               "
        "3               k0UdO9_gwLREc7GD5IAkGg /127.0.0.1      second",
        "billing         orders                        3          0               3               "
        "3               k0UdO9_gwLREc7GD5IAkGg /127.0.0.1      second",
    )
    verbose = views.offsets_table(found, verbose=True).plain()
    assert verbose[1].split()[2:7] == ["0", "-", "0", "0", "0"]
    assert verbose[2].split()[2:7] == ["0", "0", "3", "3", "0"]


def test_offsets_of_a_group_without_members() -> None:
    gone = [TopicPartition("gone", number) for number in range(2)]
    found = views.group_offsets(
        EMPTIED, dict.fromkeys(gone, CommittedOffset(6, 0)), dict.fromkeys(gone, 6)
    )
    assert views.offsets_table(found, verbose=True).plain() == lines(
        "GROUP           TOPIC           PARTITION  LEADER-EPOCH    CURRENT-OFFSET  "
        "LOG-END-OFFSET  LAG             CONSUMER-ID     HOST            CLIENT-ID",
        "emptied         gone            0          0               6               6"
        "               0               -               -               -",
        "emptied         gone            1          0               6               6"
        "               0               -               -               -",
    )


def test_what_is_not_known_is_a_dash() -> None:
    (row,) = views.group_offsets(EMPTIED, {TopicPartition("t", 0): CommittedOffset(1)}, {}).rows
    assert (row.end, row.lag) == (None, None)
    nothing = views.group_offsets(BILLING, {}, {TopicPartition("orders", 2): 5})
    text = "\n".join(views.offsets_table(nothing, verbose=False).plain())
    assert "orders                        2          -               5               -  " in text


def test_members() -> None:
    assert views.members_table(BILLING, verbose=False).plain() == lines(
        "GROUP           CONSUMER-ID            GROUP-INSTANCE-ID HOST            CLIENT-ID       "
        "#PARTITIONS     |",
        "billing         JJIAFy5iE9NyilELeyzjKA                   /127.0.0.1      first           "
        "3               |",
        "billing         k0UdO9_gwLREc7GD5IAkGg inst-2            /127.0.0.1      second          "
        "2               |",
    )
    assert views.members_table(EMPTIED, verbose=False).plain() == lines(
        "GROUP           CONSUMER-ID     HOST            CLIENT-ID       #PARTITIONS     |"
    )


def test_members_with_epochs_and_assignments() -> None:
    assert views.members_table(BILLING, verbose=True).plain() == lines(
        "GROUP           CONSUMER-ID            GROUP-INSTANCE-ID HOST            CLIENT-ID       "
        "#PARTITIONS     CURRENT-EPOCH   CURRENT-ASSIGNMENT                         "
        "TARGET-EPOCH    TARGET-ASSIGNMENT                         |",
        "billing         JJIAFy5iE9NyilELeyzjKA                   /127.0.0.1      first           "
        "3               3               a-topic-with-a-very-long-name:0;orders:0,1 "
        "3               a-topic-with-a-very-long-name:0;orders:0,1",
        "billing         k0UdO9_gwLREc7GD5IAkGg inst-2            /127.0.0.1      second          "
        "2               3               orders:2,3                                 "
        "3               orders:2,3                                |",
    )
    assert views.members_table(OLD, verbose=True).plain() == lines(
        "GROUP           CONSUMER-ID                                          HOST            "
        "CLIENT-ID       #PARTITIONS     CURRENT-EPOCH   CURRENT-ASSIGNMENT   TARGET-EPOCH    "
        "TARGET-ASSIGNMENT   |",
        "old-style       aiokafka-0.14.0-01379b41-5e62-4291-8a1d-7165afc23ecd /127.0.0.1      "
        "aiokafka-0.14.0 4               -               orders:0,1,2,3       -               "
        "-                   |",
    )


def test_a_mixed_group_says_who_is_upgraded() -> None:
    mixed = replace(
        BILLING, members=(replace(FIRST, is_classic=True), replace(SECOND, is_classic=False))
    )
    head, *rows = views.members_table(mixed, verbose=True).plain()
    assert head.endswith(" UPGRADED")
    assert [row.split(" ")[-1] for row in rows] == ["false", "true"]
    for all_alike in (True, False, None):
        members = tuple(replace(each, is_classic=all_alike) for each in mixed.members)
        head, *_ = views.members_table(replace(mixed, members=members), verbose=True).plain()
        assert "UPGRADED" not in head


def test_topics_of_an_assignment_are_in_the_order_of_their_texts() -> None:
    partitions = [TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("a-b", 2)]
    assert views.assignment_text(partitions) == "a-b:2;a:0,1"
    assert views.assignment_text([]) == views.assignment_text(None) == "-"


def test_states() -> None:
    assert views.state_table(BILLING, verbose=False).plain() == lines(
        "GROUP           COORDINATOR (ID)          ASSIGNMENT-STRATEGY  STATE                "
        "#MEMBERS",
        "billing         127.0.0.1:60129  (1)      uniform              Stable               2",
    )
    assert views.state_table(OLD, verbose=True).plain() == lines(
        "GROUP           COORDINATOR (ID)          ASSIGNMENT-STRATEGY  STATE                "
        "GROUP-EPOCH     TARGET-ASSIGNMENT-EPOCH   #MEMBERS",
        "old-style       127.0.0.1:60129  (1)      roundrobin           Stable               "
        "-               -                         1",
    )


def test_lists() -> None:
    groups = [
        GroupListing("billing", "Consumer", "Stable", "consumer"),
        GroupListing("old-style", "Classic", "Stable", "consumer"),
    ]
    assert views.listing_names(groups) == ["billing", "old-style"]
    assert views.listing_table(groups, types=True, states=True).plain() == lines(
        "GROUP                     TYPE                 STATE               |",
        "billing                   Consumer             Stable              |",
        "old-style                 Classic              Stable              |",
    )
    long = [replace(groups[0], group_id="a-name-of-twenty-let")]
    assert views.listing_table(long, types=True, states=False).plain() == lines(
        "GROUP                          TYPE                |",
        "a-name-of-twenty-let           Consumer            |",
    )


def test_new_offsets() -> None:
    planned = {
        "emptied": {
            TopicPartition("gone", 0): views.Move(6, 5),
            TopicPartition("gone", 1): views.Move(None, 5),
        }
    }
    assert views.new_offsets_table(planned).plain() == lines(
        "GROUP           TOPIC           PARTITION  NEW-OFFSET",
        "emptied         gone            0          5",
        "emptied         gone            1          5",
    )
    assert views.new_offsets_table({"a-name-of-18-chars": {}}).plain() == lines(
        "GROUP              TOPIC           PARTITION  NEW-OFFSET",
    )


def test_what_is_moving_is_told_with_who_holds_it_up() -> None:
    assert views.moving(BILLING) == []
    newcomer = replace(
        SECOND,
        member_id="new",
        assignment=(),
        target_assignment=(TopicPartition("orders", 1), TopicPartition("orders", 9)),
    )
    leaver = replace(FIRST, target_assignment=FIRST.assignment[:2], epoch=2)
    group = replace(BILLING, members=(leaver, newcomer))
    assert views.moving(group) == [
        f"orders-1 is moving to new; {FIRST.member_id} (/127.0.0.1) still has it",
        "orders-9 is moving to new; no member has it now",
        f"{FIRST.member_id} is at epoch 2, the target assignment at 3",
    ]
    given_up = replace(leaver, assignment=leaver.target_assignment or (), epoch=3)
    after = replace(group, members=(given_up, newcomer))
    assert views.moving(after, group) == [
        f"orders-1 is moving from {FIRST.member_id} to new; no member has it now",
        "orders-9 is moving to new; no member has it now",
    ]
    taken = replace(newcomer, assignment=newcomer.target_assignment or ())
    assert views.moving(replace(group, members=(given_up, taken)), group) == [
        f"orders-1 moved from {FIRST.member_id} to new",
        "orders-9 moved to new",
    ]
    forgotten = replace(leaver, target_assignment=(), assignment=FIRST.assignment[:1], epoch=3)
    assert views.moving(replace(BILLING, members=(forgotten,))) == [
        f"{LONG}-0 is moving to no member; {FIRST.member_id} (/127.0.0.1) still has it",
    ]
