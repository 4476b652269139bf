"""No name is lost that others have in their dashboards, log settings, tests or scripts."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Final

import pytest

from kip848_client.cli import main
from mock_coordinator import pytest_plugin
from tests.support.stored import FIXTURES
from tests.support.stored.names import all_names, read

NAMES: Final = read(FIXTURES)
TODAY: Final = cache(all_names)


@pytest.mark.parametrize("kind", NAMES)
def test_no_name_is_lost(kind: str) -> None:
    """There may be new ones: a metric with another label or type is a lost one and a new one."""
    lost = sorted({*NAMES[kind]} - {*TODAY()[kind]})
    assert not lost, f"{kind}: {lost}"


def test_loggers_are_not_named_after_modules() -> None:
    """Their names would change when a module moves."""
    assert TODAY()["loggers"] == NAMES["loggers"]


def test_pytest_has_the_fixtures_of_the_plugin(request: pytest.FixtureRequest) -> None:
    known = request.session._fixturemanager
    names = [each for each in NAMES["pytest fixtures and hooks"] if not each.startswith("pytest_")]
    assert len(names) == 4
    for name in names:
        defined = known.getfixturedefs(name, request.node)
        assert defined, name
        assert defined[-1].func.__module__ == pytest_plugin.__name__, name


def test_what_entry_points_name_is_there() -> None:
    assert callable(main)
    for name in (*NAMES["pytest plugins"], *NAMES["packages of the wheel"]):
        import_module(name)
