"""What an assignor returned is looked at before it is sent."""

from __future__ import annotations

from typing import Any

import pytest

from kip848_client.core.client_assignors import (
    AssignorFailed,
    AssignorMetadata,
    CheckedAssignment,
    GroupAssignment,
    GroupMember,
    GroupTopic,
    MemberAssignment,
    MemberRow,
    PreparedGroup,
    checked_assignment,
)
from kip848_client.core.types import TopicId, TopicPartition

T, U = TopicId(b"t" * 16), TopicId(b"u" * 16)
GROUP = PreparedGroup(
    7,
    "mine",
    {
        "a": GroupMember(3, ("t", "u"), metadata=AssignorMetadata(version=2)),
        "b": GroupMember(3, ("t",)),
    },
    {"t": GroupTopic(T, 2), "u": GroupTopic(U, 1)},
)
U0 = TopicPartition("u", 0)
Loose: Any = GroupAssignment
LooseMember: Any = MemberAssignment
"""For mistakes that a type checker would not let us make."""
TOO_LARGE = 128


class Unreadable(dict[str, Any]):
    """A mapping of a user that fails."""

    def items(self) -> Any:
        raise LookupError("no items today")


def given(**partitions: Any) -> GroupAssignment:
    return GroupAssignment({each: MemberAssignment(mine) for each, mine in partitions.items()})


def test_what_is_right_becomes_rows_by_id() -> None:
    both = Loose(
        {
            "a": LooseMember({U0, ("t", 1)}),
            "b": MemberAssignment([TopicPartition("t", 0)], b"x", 1),
        }
    )
    assert checked_assignment(GROUP, both) == CheckedAssignment(
        (
            MemberRow("a", ((T, (1,)), (U, (0,))), 2, b""),
            MemberRow("b", ((T, (0,)),), 1, b"x"),
        )
    )


T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.mark.parametrize(
    ("returned", "problem"),
    [
        (None, "it returned None; expected a GroupAssignment"),
        ({}, "expected a GroupAssignment"),
        (given(a=[T0, T1, U0], zzz=[]), "there is no member 'zzz'"),
        (Loose({5: LooseMember()}), "there is no member 5"),
        (Loose([("a", 1)]), "expected assignments by member id"),
        (Loose({"a": [T0]}), "expected a MemberAssignment"),
        (given(a=[T0, U0], b=[T0, T1]), "partition t-0 is given twice, to a and to b"),
        (given(a=[T0, T0, T1, U0]), "partition t-0 is given twice, to a and to a"),
        (given(a=[T0, U0]), "partition t-1 is not assigned to any member"),
        (given(a=[T0, T1, U0, TopicPartition("v", 0)]), "topic 'v', which is not there"),
        (given(a=[T0, T1, U0, ("t", 2)]), "partition of t = 2: expected a number from 0 to 1"),
        (given(a=[T0, T1, U0, ("t", -1)]), "partition of t = -1"),
        (given(a=[T0, T1, U0, ("t", True)]), "partition of t = True"),
        (given(a=[T0, T1, U0, ("t", "0")]), "partition of t = '0'"),
        (given(a=[T0, T1], b=[U0]), "member b is given u, and does not subscribe"),
        (given(a=["t-0"]), r"'t-0'; expected \(topic, partition\)"),
        (given(a="t"), "partitions of member a = 't'"),
        (given(a=None), "partitions of member a = None"),
        (given(a=[([], 0)]), "topic \\[\\]"),
        (Loose({"a": LooseMember([T0, T1, U0], "x")}), "expected bytes"),
        (Loose({"a": LooseMember([T0, T1, U0], b"", 2**15)}), "version"),
        (Loose({"a": LooseMember([T0, T1, U0], b"", "1")}), "version"),
        (Loose(error=TOO_LARGE), "error = 128: expected a number from 0 to 127"),
        (Loose(error=None), "error = None"),
        (Loose(Unreadable()), "cannot be read: LookupError: no items today"),
    ],
)
def test_what_cannot_be_is_named(returned: object, problem: str) -> None:
    with pytest.raises(AssignorFailed, match=problem):
        checked_assignment(GROUP, returned)


def test_an_error_needs_no_assignment() -> None:
    own = 3
    assert checked_assignment(GROUP, GroupAssignment(error=own)) == CheckedAssignment(error=own)
