"""Prints the page."""

from __future__ import annotations

import sys

from tests.history_page import page

__all__: list[str] = []

sys.stdout.write(page())
