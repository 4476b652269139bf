"""The order of the tests: what takes long comes first, and together what needs the same broker or
the same Spark (``tests.support.dealing``)."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from tests.support.dealing import deal
from tests.support.kafka_jars import ALL_VERSIONS
from tests.support.pytest_everything import is_left_out

__all__ = ["pytest_collection_modifyitems"]


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None]:
    """Deal what the other hooks have left."""
    yield
    worker = getattr(config, "workerinput", {"workercount": 1})  # pytest-xdist tells its workers
    items[:] = deal(items, worker["workercount"], home=_home, is_slow=is_left_out)


def _home(item: pytest.Item) -> str | None:
    """The release that the test plays, or Spark; ``None`` for a test that needs nothing shared."""
    if item.path.parent.name == "spark":
        return "spark"
    call = getattr(item, "callspec", None)
    given = [each for each in call.params.values() if isinstance(each, str)] if call else []
    names = {each.removeprefix("kafka-") for each in given}
    return next((name for name in reversed(ALL_VERSIONS) if name in names), None)
