"""``kip848 groups describe`` of a group whose members compute its assignment."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from kip848_client.cli import main
from kip848_client.core.client_assignors import ASSIGNOR_FAILED, GroupAssignment
from mock_coordinator import MockBroker
from tests.integration.test_client_assignors import FAST, ByCapacity, Group, Members, Topics

pytestmark = pytest.mark.asyncio


class Broken(ByCapacity):
    """Raises, from now on, when it is asked to compute."""

    is_broken = False

    def assign(self, members: Members, topics: Topics) -> GroupAssignment:
        if self.is_broken:
            raise ZeroDivisionError
        return super().assign(members, topics)


class Describe:
    """Runs ``kip848 groups describe`` beside the members."""

    def __init__(self, broker: MockBroker, capsys: pytest.CaptureFixture[str]) -> None:
        self._arguments = ["groups", "describe", "--bootstrap-server", broker.bootstrap]
        self._capsys = capsys

    async def __call__(self, *options: str) -> str:
        self._capsys.readouterr()
        arguments = [*self._arguments, "--group", "g", *options]
        ended = await asyncio.to_thread(main, arguments)
        out, errors = self._capsys.readouterr()
        assert ended == 0, errors
        return out

    async def members(self, *options: str) -> list[dict[str, str]]:
        """The table of members: heading to cell."""
        _, heads, *rows = (await self("--members", *options)).splitlines()
        return [dict(zip(heads.split(), row.split(), strict=True)) for row in rows]

    async def json(self, *options: str) -> Any:
        (found,) = json.loads(await self(*options, "--json"))
        return found


async def test_members_are_shown_with_what_their_assignor_says(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with MockBroker(topics={"t": 6}, config=FAST) as broker, Group(broker) as group:
        describe = Describe(broker, capsys)
        await group.join(ByCapacity(2), client_id="large")
        await group.join(ByCapacity(1), client_id="small")
        await group.shared(4, 2)
        said = {"large": b"4 of them".hex(), "small": b"2 of them".hex()}
        shown = await describe.members("--verbose")
        heads = ("CLIENT-ID", "ASSIGNOR", "ERROR", "VERSION", "METADATA")
        assert [tuple(row[head] for head in heads) for row in shown] == [
            (client_id, "by-capacity", "0", "0", data) for client_id, data in said.items()
        ]
        assert "ASSIGNOR" not in (await describe.members())[0]
        found = await describe.json("--members")
        assert found["assignment_strategy"] == "by-capacity"
        assert found["computed_by_member"] is True
        for each in found["members"]:
            expected = {"error": 0, "version": 0, "metadata": said[each["client_id"]]}
            assert each["assignor_said"] == each["assignor_said_with_target"] == expected
        state = await describe.json("--state", "--verbose")
        assert state["assignment_strategy"] == "by-capacity"


async def test_the_error_of_an_assignor_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    async with MockBroker(topics={"t": 6}, config=FAST) as broker, Group(broker) as group:
        describe = Describe(broker, capsys)
        broken = Broken(1)
        await group.join(broken)
        await group.shared(6)
        broken.is_broken = True
        other = Broken(1)
        other.is_broken = True
        await group.join(other)
        await broker.wait_for(lambda: broken.told[-1].error == ASSIGNOR_FAILED)
        shown = await describe.members("--verbose")
        assert {row["ERROR"] for row in shown} == {str(ASSIGNOR_FAILED)}
        assert [row["METADATA"] for row in shown] == [b"6 of them".hex(), "-"]
        found = await describe.json("--members")
        errors = {each["assignor_said_with_target"]["error"] for each in found["members"]}
        assert errors == {ASSIGNOR_FAILED}


async def test_a_group_without_a_client_side_assignor_has_no_such_columns(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with MockBroker(topics={"t": 6}, config=FAST) as broker, Group(broker) as group:
        describe = Describe(broker, capsys)
        await group.join()
        await group.shared(6)
        assert not {"ASSIGNOR", "ERROR"} & (await describe.members("--verbose"))[0].keys()
        found = await describe.json("--members")
        assert found["assignment_strategy"] == "uniform"
        assert found["computed_by_member"] is False
        assert found["members"][0]["assignor_said"] is None
