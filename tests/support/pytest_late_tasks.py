"""The option ``--late-tasks``: drivers' tasks begin some turns of the event loop later."""

from __future__ import annotations

import pytest

from tests.support.late_tasks import begin_late

__all__ = ["drivers_begin_late", "pytest_addoption"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--late-tasks",
        type=int,
        default=0,
        metavar="TURNS",
        help="let each task that a driver starts begin this many turns of the event loop later",
    )


@pytest.fixture(autouse=True)
def drivers_begin_late(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing without the option."""
    turns = request.config.getoption("--late-tasks")
    if turns:
        begin_late(monkeypatch, turns)
