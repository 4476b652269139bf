"""Two suites in one: ``pytest`` answers in minutes, ``pytest --everything`` leaves nothing out.

Without the option these are deselected:

* tests marked ``everything("why it is not for every run")``,
* tests marked ``real_kafka`` or ``foreign``, unless they are marked ``smoke`` as well.

The last lines say how many, and how to run them. A test that the command line names by its own
id (``test_file.py::test_name``) is always run. Properties are tried with fewer examples.

A test of these, unless it says another time, may take five minutes before it counts as hanging:
it shares its two cores with brokers that start.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final

import pytest

from tests.support.examples import choose_examples

__all__ = [
    "is_everything",
    "is_left_out",
    "pytest_addoption",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_terminal_summary",
    "pytest_testnodedown",
]

_OPTION: Final = "--everything"
_MARK: Final = "everything"
_SLOW_BY_NATURE: Final = ("real_kafka", "foreign")
_SMOKE: Final = "smoke"
_PATIENCE_S: Final = 300
_COUNT: Final = "tests left to --everything"
_LEFT_OUT: Final = pytest.StashKey[int]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        _OPTION,
        action="store_true",
        help="all tests: every Kafka release, foreign clients, differential, endurance, fuzzing",
    )


def pytest_configure(config: pytest.Config) -> None:
    choose_examples(everything=is_everything(config))


def is_everything(config: pytest.Config) -> bool:
    """Whether this run leaves nothing out."""
    return bool(config.getoption(_OPTION))


def is_left_out(item: pytest.Item) -> bool:
    """Whether the quick suite does without the test."""
    mark = item.get_closest_marker(_MARK)
    if mark is not None:
        if not mark.args:
            raise pytest.UsageError(f"{item.nodeid}: {_MARK} needs a reason")
        return True
    slow = any(item.get_closest_marker(each) for each in _SLOW_BY_NATURE)
    return slow and item.get_closest_marker(_SMOKE) is None


def _is_slow(item: pytest.Item) -> bool:
    return any(item.get_closest_marker(each) for each in (_MARK, *_SLOW_BY_NATURE))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if _is_slow(item) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(_PATIENCE_S))
    named = [each for each in config.args if "::" in each]
    if is_everything(config) or named:
        return
    left_out = [item for item in items if is_left_out(item)]
    items[:] = [item for item in items if not is_left_out(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        # A worker of pytest-xdist collects as well; its count goes to the process that reports.
        getattr(config, "workeroutput", {})[_COUNT] = len(left_out)
        config.stash[_LEFT_OUT] = len(left_out)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Each worker of pytest-xdist has collected the same tests and left out the same."""
    count = getattr(node, "workeroutput", {}).get(_COUNT, 0)
    if count and _LEFT_OUT not in node.config.stash:
        node.config.stash[_LEFT_OUT] = count
        reporter = node.config.pluginmanager.get_plugin("terminalreporter")
        reporter.stats.setdefault("deselected", []).extend([_Unseen()] * count)


class _Unseen:
    """Stands for a deselected test among the reporter's counts."""

    count_towards_summary = True


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> Generator[None]:
    """The last thing above pytest's closing line."""
    yield
    count = config.stash.get(_LEFT_OUT, 0)
    if count:
        terminalreporter.write_line(
            f"{count} tests were deselected: this was the quick suite. "
            f"`pytest {_OPTION}` runs every one."
        )
