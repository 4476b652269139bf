"""How to install what a part of the package needs beside it.

Nothing is published yet, so that a clone of the repository is installed. When there is a release,
the command changes here and on the pages, which a test compares with it
(``tests/pages/test_every_command.py``).
"""

from __future__ import annotations

__all__ = ["installation"]


def installation(extra: str) -> str:
    """The command that installs an extra: ``pip install '.[report]'``, and where to type it."""
    return f"pip install '.[{extra}]' in a clone of kip848-client"
