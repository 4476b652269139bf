"""What every test may use: the fixtures of ``tests.support`` and the suite's options."""

from __future__ import annotations

__all__ = ["pytest_plugins"]

pytest_plugins = ["tests.support.pytest_kafka"]
