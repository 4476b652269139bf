"""Installation commands for optional dependencies.

The package is not published yet, so it is installed from a clone of the repository. After a
release, the command changes here and in the documentation; ``tests/pages/test_every_command.py``
compares the two.
"""

from __future__ import annotations

__all__ = ["installation"]


def installation(extra: str) -> str:
    """Return the command that installs an extra, such as ``pip install '.[report]'``, and where to
    run it.
    """
    return f"pip install '.[{extra}]' in a clone of kip848-client"
