"""``install``: for frameworks that name aiokafka's classes themselves.

It replaces ``AIOKafkaConsumer`` and ``AIOKafkaProducer`` in aiokafka's public modules. Modules that
imported them before keep aiokafka's classes; a warning names them.
"""

from __future__ import annotations

import logging
import sys
from types import ModuleType, TracebackType
from typing import Any, Final, Self

from kip848_client.aiokafka import _parents as theirs
from kip848_client.aiokafka._consumer import AIOKafkaConsumer
from kip848_client.aiokafka._producer import AIOKafkaProducer
from kip848_client.errors import LocalProtocolError

__all__ = ["Installation", "install"]

_log = logging.getLogger("kip848_client")

_PLACES: Final[tuple[tuple[ModuleType, str, type], ...]] = (
    (theirs.package, "AIOKafkaConsumer", AIOKafkaConsumer),
    (theirs.consumer, "AIOKafkaConsumer", AIOKafkaConsumer),
    (theirs.package, "AIOKafkaProducer", AIOKafkaProducer),
    (theirs.producer, "AIOKafkaProducer", AIOKafkaProducer),
)
_PACKAGES: Final = ("aiokafka", "kip848_client")

_before: Final[list[Any]] = []
"""The replaced classes; empty while nothing is installed."""
_installations: Final[list[Installation]] = []


class Installation:
    """The result of ``install``. Call ``undo``, or leave the block.

    The classes stay in place until each installation is undone.
    """

    def undo(self) -> None:
        """Put back the classes that were there before, usually aiokafka's.

        Objects that were created meanwhile stay what they are. So does a class that other code has
        put in place of ours; a warning names it. A second call does nothing. Raises nothing.
        """
        if self not in _installations:
            return
        _installations.remove(self)
        if not _installations:
            _put_back()

    def __enter__(self) -> Self:
        if self not in _installations:
            raise LocalProtocolError("this installation was undone; call install() again")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.undo()


def install() -> Installation:
    """Replace aiokafka's two client classes by ours in this process.

    Code that looks up ``aiokafka.AIOKafkaConsumer`` or ``aiokafka.AIOKafkaProducer`` from now on
    gets ours. Call it before a framework creates its brokers (FastStream) or is imported
    (kstreams). A warning names modules and subclasses that have aiokafka's classes already. Raises
    nothing.

    Returns:
        What undoes it: call ``undo``, or use it in a ``with`` statement.
    """
    if not _installations:
        late = _late()
        if late:
            _log.warning(
                "imported before install(), and keep aiokafka's own classes: %s", ", ".join(late)
            )
        _before.extend(_found(*place) for place in _PLACES)
        for module, name, ours in _PLACES:
            setattr(module, name, ours)
    installation = Installation()
    _installations.append(installation)
    return installation


def _found(module: ModuleType, name: str, ours: type) -> Any:
    """The class in a module now. It may be ours even if nothing is installed: code that replaced
    ours and restored it after ``undo`` has put it back."""
    found = getattr(module, name)
    return getattr(theirs, name) if found is ours else found


def _put_back() -> None:
    for (module, name, ours), before in zip(_PLACES, _before, strict=True):
        if getattr(module, name) is ours:
            setattr(module, name, before)
        else:
            place = f"{module.__name__}.{name}"
            _log.warning("other code has changed %s since install(); it is left as it is", place)
    _before.clear()


def _late() -> list[str]:
    """The modules and subclasses that already have aiokafka's classes."""
    kept = (theirs.AIOKafkaConsumer, theirs.AIOKafkaProducer)
    found = {
        module
        for module, each in list(sys.modules.items())
        for name in ("AIOKafkaConsumer", "AIOKafkaProducer")
        if any(vars(each).get(name) is one for one in kept)
    }
    for one in kept:
        found |= {f"{each.__module__}.{each.__qualname__}" for each in one.__subclasses__()}
    return sorted(each for each in found if each.split(".")[0] not in _PACKAGES)
