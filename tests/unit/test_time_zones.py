"""Times that are read and shown do not depend on the zone in which the machine lives."""

from __future__ import annotations

import time
from collections.abc import Generator
from unittest.mock import Mock

import pytest

from kip848_client.admin import parse_datetime_ms
from kip848_client.history.report._style import time_axis
from kip848_client.history.report._views import clock_text

NEW_YEAR_MS = 1_767_225_600_000
"""2026-01-01T00:00:00 UTC; in New York it is the evening before, in Kiritimati the afternoon."""


@pytest.fixture(params=["America/New_York", "Pacific/Kiritimati"])
def elsewhere(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """A process that lives in another zone than UTC."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    assert time.localtime(NEW_YEAR_MS // 1000).tm_hour != 0
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("elsewhere")
def test_a_date_without_a_zone_is_utc() -> None:
    assert parse_datetime_ms("2026-01-01T00:00:00.000") == NEW_YEAR_MS
    assert parse_datetime_ms("2026-01-01T00:00:00Z") == NEW_YEAR_MS
    assert parse_datetime_ms("2025-12-31T19:00:00-05:00") == NEW_YEAR_MS
    # an hour that is there twice in New York, and one that is not there at all
    assert parse_datetime_ms("2026-11-01T01:30:00") == 1_793_496_600_000
    assert parse_datetime_ms("2026-03-08T02:30:00") == 1_772_937_000_000


@pytest.mark.usefixtures("elsewhere")
def test_a_report_shows_utc() -> None:
    assert clock_text(NEW_YEAR_MS) == "00:00:00"
    axes = Mock()
    view = Mock(is_real=True, start_ms=NEW_YEAR_MS, end_ms=NEW_YEAR_MS + 3_600_000)
    time_axis(axes, view)
    assert axes.set_xlabel.call_args.args == ("time (UTC), 2026-01-01",)
    assert axes.set_xticks.call_args.args[1][0] == "00:00"
