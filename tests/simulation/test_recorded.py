"""``kip848 simulate --events``: a world is written down as what happens to its members."""

from __future__ import annotations

from pathlib import Path

import pytest

from kip848_client.cli import main
from kip848_client.history.core import tables_of
from kip848_client.history.recording import read_files


@pytest.mark.everything("a world takes seconds, and what it writes has tests of its own")
def test_a_world_of_groups_is_written_down(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "events.jsonl"
    assert main(["simulate", "--seed", "3", "--digest"]) == 0
    plain = capsys.readouterr().out
    assert main(["simulate", "--seed", "3", "--digest", "--events", str(path)]) == 0
    assert capsys.readouterr().out == plain, "whoever looks changes nothing"
    record = read_files([path])
    assert (record.bad, record.missing) == (0, 0)
    tables = tables_of(record.events)
    assert not tables.clock_offsets, "all have one clock"
    assert {event.role for event in tables.events} == {"consumer", "coordinator"}
    assert tables.partition_downtime
    assert tables.rebalance_duration


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--seeds", "0..3", "--events", "e"], "--events is for one world: say --seed 7"),
        (["--seed", "1", "--fetching", "--events", "e"], "--events is for worlds of groups"),
        (["--seed", "1", "--events", "no/such/folder/e"], "No such file or directory"),
    ],
)
def test_what_cannot_be_written_down_is_told(
    capsys: pytest.CaptureFixture[str], arguments: list[str], why: str
) -> None:
    assert main(["simulate", *arguments]) == 2
    assert why in capsys.readouterr().err
