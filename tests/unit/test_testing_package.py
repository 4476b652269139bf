"""The bundled broker is importable under a name of the client's package."""

from __future__ import annotations

import mock_coordinator
from kip848_client import testing


def test_it_has_what_the_broker_has_and_the_very_same() -> None:
    assert testing.__all__ == mock_coordinator.__all__
    for name in testing.__all__:
        assert getattr(testing, name) is getattr(mock_coordinator, name)
