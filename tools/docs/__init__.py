"""Pages of ``docs/reference`` that are generated from tables of the code.

``python -m tools.docs`` writes all of them; ``tests/pages/test_generated_pages.py`` fails if one is
outdated. Each module or folder here is one page (``states``: two). The rows of ``tests/known_bugs``
are tests and stay there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from tests.known_bugs import table as known_bugs
from tools.docs import coverage, edge_cases, errors, history, metrics, pipeline, settings, states

__all__ = ["FOLDER", "PAGES"]

FOLDER: Final = Path(__file__).parents[2] / "docs" / "reference"

PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "coverage.md": coverage.page,
    "edge-cases.md": edge_cases.page,
    "errors.md": errors.page,
    "history.md": history.page,
    "known-bugs.md": known_bugs.page,
    "member-states.md": lambda: states.page(states.TABLES["member"]),
    "metrics.md": metrics.page,
    "pipeline.md": pipeline.page,
    "settings.md": settings.page,
    "worker-states.md": lambda: states.page(states.TABLES["worker"]),
}
