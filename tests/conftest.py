"""What every test may use: the fixtures of ``tests.support`` and the suite's options."""

from __future__ import annotations

import pytest

__all__ = ["pytest_addoption", "pytest_plugins"]

pytest_plugins = [
    "tests.support.pytest_bytecode",
    "tests.support.pytest_collecting",
    "tests.support.pytest_everything",
    "tests.support.pytest_garbage",
    "tests.support.pytest_kafka",
    "tests.support.pytest_late_tasks",
    "tests.support.pytest_order",
]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite",
        action="store_true",
        help="write what the bundled coordinator prints into the scenario files; read the diff",
    )
