"""Pickles of an earlier state of the repository are read by today's."""

from __future__ import annotations

import pickle
from importlib import import_module
from typing import Any, Final

import pytest

from tests.support.stored import FIXTURES
from tests.support.stored.made import ERRORS, stored_objects
from tests.support.stored.pickles import PROTOCOL, modules_named, read

PICKLES: Final = read(FIXTURES)

PUBLIC: Final = {*ERRORS, "mock_coordinator"}
"""Paths that users import: what is in them stays there."""
LOADABLE: Final = {
    "kip848_client.core.types",
    "kip848_client.core.assignors._spec",
    "kip848_client.core.client_assignors._model",
    "kip848_client.core.connect._resources",
    "kip848_client.history.core._lines",
    "kip848_client.records._record",
    "kip848_client.spark.pipeline._errors",
    "mock_coordinator.core.ownership",
    "mock_coordinator.storage.data_file",
}
"""Paths that no user types, and that these pickles name. From the first release on their classes
may move only if a module with the old path hands them out."""


def _found(name: str) -> Any:
    module, _, attribute = name.rpartition(".")
    return getattr(import_module(module), attribute)


def test_each_class_that_is_stored_today_was_stored() -> None:
    new = stored_objects().keys() - PICKLES.keys()
    assert not new, f"python -m tests.support.stored pickles: {sorted(new)}"


@pytest.mark.parametrize("name", PICKLES)
def test_a_pickle_is_read(name: str) -> None:
    found, expected = pickle.loads(PICKLES[name]), stored_objects()[name]
    assert type(found) is _found(name)
    if isinstance(found, BaseException):
        assert (str(found), found.args) == (str(expected), expected.args)
        assert repr(vars(found)) == repr(vars(expected))
    else:
        assert found == expected


def test_the_modules_that_the_pickles_name() -> None:
    named = set[str]().union(*map(modules_named, PICKLES.values()))
    assert named - PUBLIC == LOADABLE


@pytest.mark.parametrize("name", [name for name in PICKLES if name.startswith(ERRORS)])
def test_an_error_is_stored_by_its_public_path(name: str) -> None:
    """Not only is an old pickle read: an old program reads a new one as well."""
    module = name.rpartition(".")[0]
    assert module in modules_named(pickle.dumps(stored_objects()[name], PROTOCOL))
    assert _found(name).__module__ == module
