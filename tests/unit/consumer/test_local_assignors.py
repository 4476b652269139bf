"""Client-side assignors as a setting, and what they say in heartbeats."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kip848_client.config import ConsumerConfig
from kip848_client.consumer._assignors import LocalAssignors
from kip848_client.core.client_assignors import AssignorMetadata, StickyAssignor
from kip848_client.core.member import OfferedAssignor
from kip848_client.errors import ConfigError


class Versions(StickyAssignor):
    """With other versions, and with whatever metadata."""

    def __init__(self, low: Any = 0, high: Any = 0, name: Any = "v") -> None:
        self.minimum_version, self.maximum_version = low, high
        self.name = name
        self.said: Any = AssignorMetadata()

    def metadata(self) -> AssignorMetadata:
        if isinstance(self.said, BaseException):
            raise self.said
        said: AssignorMetadata = self.said
        return said


class Awkward:
    """Has no name to speak of."""

    @property
    def name(self) -> str:
        raise OSError("no")


def config(assignors: Any, **settings: Any) -> ConsumerConfig:
    return ConsumerConfig.of({"group_id": "g", "group_local_assignors": assignors, **settings})


def test_assignors_are_taken_in_order() -> None:
    first, second = Versions(), StickyAssignor()
    assert config([first, second]).group_local_assignors == (first, second)
    assert ConsumerConfig.of({}).group_local_assignors == ()


@pytest.mark.parametrize(
    ("assignors", "problem"),
    [
        (None, "expected a list"),
        ("sticky", "expected a list"),
        (StickyAssignor(), "expected a list"),
        (["sticky"], "is no ClientAssignor"),
        ([StickyAssignor], "is a class; give an instance"),
        ([Awkward()], "OSError: no"),
        ([StickyAssignor(), StickyAssignor()], "two assignors of the name 'sticky'"),
        ([Versions(2, 1)], "versions 2 to 1"),
        ([Versions(-2, 1)], "versions -2 to 1"),
        ([Versions(-1, -1)], "versions -1 to -1"),
        ([Versions(0, 32_768)], "versions 0 to 32768"),
        ([Versions(0, "1")], "maximum_version"),
        ([Versions(True, 1)], "minimum_version"),
        ([Versions(name=" ")], "the name of"),
        ([Versions(name=None)], "the name of"),
    ],
)
def test_what_is_no_assignor_is_a_wrong_setting(assignors: Any, problem: str) -> None:
    with pytest.raises(ConfigError, match=f"group_local_assignors.*{problem}"):
        config(assignors)


def test_they_do_not_go_with_the_brokers_or_without_a_group() -> None:
    with pytest.raises(ConfigError, match="cannot be used together"):
        config([StickyAssignor()], group_remote_assignor="range")
    with pytest.raises(ConfigError, match="needs a group_id"):
        config([StickyAssignor()], group_id=None)


def test_what_they_say_is_offered() -> None:
    assignor = Versions(-1, 3)
    local = LocalAssignors([assignor])
    assignor.said = AssignorMetadata(b"x", 2, reason=-1)
    assert local.offer() == (OfferedAssignor("v", -1, 3, -1, 2, b"x"),)


@pytest.mark.parametrize(
    "said",
    [
        ValueError("not yet"),
        None,
        AssignorMetadata("x"),  # type: ignore[arg-type]  # a mistake
        AssignorMetadata(version=4),
        AssignorMetadata(reason=128),
    ],
)
def test_where_they_cannot_say_it_what_they_said_before_counts(said: Any) -> None:
    assignor = Versions(1, 3)
    local = LocalAssignors([assignor])
    assignor.said = said
    at_first = local.offer()
    assert at_first == (OfferedAssignor("v", 1, 3, 0, 3, b""),)
    assignor.said = AssignorMetadata(b"x", 1)
    known = local.offer()
    assignor.said = said
    assert local.offer() == known


def test_a_cancelled_error_of_metadata_is_its_failure(caplog: pytest.LogCaptureFixture) -> None:
    """It would have ended the membership, in whose task it is asked."""
    assignor = Versions()
    assignor.said = asyncio.CancelledError()
    (offered,) = LocalAssignors([assignor], {"group_id": "g"}).offer()
    assert offered.name == "v"
    assert "metadata() of assignor v failed" in caplog.text
    told = caplog.records[-1].__dict__
    assert (told["group_id"], told["assignor"]) == ("g", "v")
