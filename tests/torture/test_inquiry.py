"""What is told of a run that does not come to its end."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from mock_coordinator.core.profiles import DEFAULT_PROFILE
from tests.torture.brokers import mock_brokers
from tests.torture.clients import a_producer
from tests.torture.hanging import Coordinated, Open, told_open
from tests.torture.inquiry import ASKED, inquest
from tests.torture.names import OUT
from tests.torture.processes import Processes
from tests.torture.roles import Role
from tests.torture.scene import Scene

FOUND: Final = Open("out", 1, producer_id=7, epoch=3, begins_at=42)
HERE: Final = frozenset({("out", 1)})


def coordinated(state: str, partitions: frozenset[tuple[str, int]] = HERE) -> Coordinated:
    return Coordinated("a", state, producer_id=7, epoch=4, partitions=partitions)


@pytest.mark.parametrize("state", ["Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence"])
def test_what_its_coordinator_will_end_does_not_hang(state: str) -> None:
    (line,) = told_open([FOUND], [coordinated(state)])
    assert line == (
        "out-1: producer 7, epoch 3, from offset 42 on: open, and its coordinator knows"
    )


@pytest.mark.parametrize(
    "known",
    [
        [],
        [coordinated("Empty")],
        [coordinated("CompleteAbort")],
        [coordinated("Ongoing", frozenset({("out", 2)}))],
        [Coordinated("b", "Ongoing", producer_id=8, epoch=3, partitions=HERE)],
    ],
)
def test_what_nobody_will_end_hangs(known: list[Coordinated]) -> None:
    (line,) = told_open([FOUND], known)
    says = [f"{each.transactional_id} is {each.state}" for each in known if each.producer_id == 7]
    assert "HANGS" in line
    assert all(each in line for each in says or ["nothing"])


@pytest.mark.asyncio
async def test_everybody_tells(tmp_path: Path) -> None:
    async with mock_brokers(DEFAULT_PROFILE) as brokers:
        running = Processes.running({"b": Role.BY_HAND}, brokers.bootstrap, 1, tmp_path)
        async with running as processes, a_producer(brokers.bootstrap, "c") as producer:
            await processes.living["b"].has_begun()
            await producer.begin_transaction()
            await producer.send_and_wait(OUT, b"0:0", partition=1)
            (line,) = await inquest(Scene(processes, brokers), tmp_path)
            await producer.abort_transaction()
    assert line.startswith("out-1: producer ")
    assert line.endswith("HANGS, its coordinator says: nothing"), "it was not asked for c"
    asked = (tmp_path / ASKED).read_text()
    assert line in asked
    assert "GroupDescription(group_id='copiers'" in asked
    assert "transactional_id='b', transaction_state='Empty'" in asked
    told = (tmp_path / "b-1.log").read_text()
    assert "Stack for <Task" in told
    assert "ConsumerHealth(" in told
    assert "ProducerSnapshot(" in told
    assert "State.READY" in told
