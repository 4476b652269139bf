"""Prints the page."""

from __future__ import annotations

import sys

from tests.edge_cases import page

__all__: list[str] = []

sys.stdout.write(page())
