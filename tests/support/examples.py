"""How often a property is tried: everything in ``pytest --everything``, a quarter in ``pytest``."""

from __future__ import annotations

from typing import Final

from hypothesis import settings

__all__ = ["choose_examples", "examples"]

_WHOLE: Final = 100
_QUICK: Final = 25


def choose_examples(*, everything: bool) -> None:
    """Say once, before a test module is imported, which suite this is.

    Neither has a deadline: how long one example takes says how busy the machine is.
    """
    settings.register_profile("everything", max_examples=_WHOLE, deadline=None)
    settings.register_profile("quick", max_examples=_QUICK, deadline=None)
    settings.load_profile("everything" if everything else "quick")


def examples(everything: int) -> int:
    """So many examples in the whole suite, fewer in the quick one: for ``max_examples``."""
    return max(1, everything * settings().max_examples // _WHOLE)
