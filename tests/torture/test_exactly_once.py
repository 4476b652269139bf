"""Exactly once under torture, for a short while, on the bundled brokers. ``tests/chaos`` does the
same to Apache Kafka, and ``python -m tests.long`` does it for longer."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.torture.brokers import mock_brokers
from tests.torture.judge import judged
from tests.torture.roles import Role
from tests.torture.run import Report, torture

SOURCE: Final = {0: [b"0", b"2"], 1: [b"1"], 2: []}
COPIES: Final = {0: [b"0:0", b"0:1"], 1: [b"1:0"], 2: []}


def test_what_is_there_once_and_in_order_is_clean() -> None:
    verdict = judged(3, SOURCE, COPIES)
    assert verdict.is_clean
    assert verdict.records == 3


@pytest.mark.parametrize(
    ("fed", "source", "copies", "wrong"),
    [
        (3, SOURCE, {**COPIES, 1: []}, "1 lost [b'1:0']"),
        (3, SOURCE, {**COPIES, 1: [b"1:0", b"1:0"]}, "1 duplicated [b'1:0']"),
        (3, SOURCE, {**COPIES, 0: [b"0:1", b"0:0"]}, "1 out of order [b'0:0']"),
        (3, SOURCE, {0: [b"0:0", b"0:1", b"1:0"], 1: [], 2: []}, "1 out of order [b'1:0']"),
        (3, SOURCE, {**COPIES, 2: [b"2:0"]}, "1 strange [b'2:0']"),
        (4, SOURCE, COPIES, "1 not fed"),
        (3, {**SOURCE, 2: [b"1"]}, {**COPIES, 2: [b"2:0"]}, "1 fed twice [b'1']"),
    ],
)
def test_what_is_wrong_is_told(
    fed: int, source: dict[int, list[bytes]], copies: dict[int, list[bytes]], wrong: str
) -> None:
    verdict = judged(fed, source, copies)
    assert not verdict.is_clean
    assert wrong in str(verdict)


def check(report: Report) -> None:
    assert report.is_clean, report
    harm = ("killed", "frozen", "succeeded", "restarted")
    moves = ("group coordinator moved", "transaction coordinator moved", "leader moved")
    assert all(report.done[each] for each in (*harm, *moves)), report
    assert report.told["abandoned"], report


@pytest.mark.asyncio
@pytest.mark.everything("processes are frozen for longer than sessions last: half a minute")
async def test_the_bundled_brokers(tmp_path: Path) -> None:
    async with mock_brokers("4.4") as brokers:
        check(await torture(Role.BY_HAND, brokers, tmp_path, seconds=24, seed=1))
