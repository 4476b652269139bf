"""Prints the page."""

from __future__ import annotations

import sys

from mock_coordinator.coverage import page

__all__: list[str] = []

sys.stdout.write(page())
