"""Pictures as SVG and PNG, and the page as a file."""

from __future__ import annotations

import importlib
import io
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kip848_client.core.extras import installation
from kip848_client.errors import ConfigError
from kip848_client.history.core import Tables
from kip848_client.history.recording import Record
from kip848_client.history.report._page import page_of
from kip848_client.history.report._views import GroupView, views_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["pictures_of", "write_page", "write_pictures"]

_PNG_DPI: Final = 150
_SVG_DPI: Final = 110
_MISSING: Final = f"pictures need matplotlib, which is not installed: {installation('report')}"
_GROUPS: Final = 20
"""The most groups with pictures on a page; all others have only numbers."""


def pictures_of(view: GroupView) -> dict[str, Figure]:
    """Draw the pictures of a group.

    Args:
        view: The group.

    Returns:
        Figures of matplotlib: ``ownership``, ``rebalances``, ``heartbeats`` and ``zombies``.

    Raises:
        ConfigError: matplotlib is not installed; the extra ``report`` brings it.
    """
    _need_matplotlib()
    from kip848_client.history.report._heartbeats import heartbeats_picture
    from kip848_client.history.report._ownership import ownership_picture
    from kip848_client.history.report._rebalances import rebalances_picture
    from kip848_client.history.report._style import styled
    from kip848_client.history.report._zombies import zombies_picture

    with styled():
        return {
            "ownership": ownership_picture(view),
            "rebalances": rebalances_picture(view),
            "heartbeats": heartbeats_picture(view),
            "zombies": zombies_picture(view),
        }


def _need_matplotlib() -> None:
    try:
        importlib.import_module("kip848_client.history.report._style")
    except ImportError as err:
        if err.name is None or not err.name.startswith("matplotlib"):
            raise
        raise ConfigError(_MISSING) from err


def write_page(path: str | os.PathLike[str], tables: Tables, record: Record) -> None:
    """Write the page to a file, with everything in it.

    At most 20 groups have pictures.

    Args:
        path: The file.
        tables: What the page is about.
        record: What was wrong with the files.

    Raises:
        ConfigError: The file cannot be written, or matplotlib is not installed.
    """
    views = views_of(tables)
    drawn = [
        {name: _svg(each) for name, each in pictures_of(view).items()} for view in views[:_GROUPS]
    ]
    text = page_of(views, drawn, tables, record)
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as err:
        raise ConfigError(f"{os.fspath(path)}: {err.strerror or err}") from err


def write_pictures(folder: str | os.PathLike[str], tables: Tables) -> list[Path]:
    """Write the pictures of all groups as PNG.

    With several groups, the names of files begin with the group's number and name.

    Args:
        folder: It is created if need be.
        tables: What the pictures are about.

    Returns:
        The paths.

    Raises:
        ConfigError: A file cannot be written, or matplotlib is not installed.
    """
    _need_matplotlib()
    from kip848_client.history.report._style import message, styled

    views = views_of(tables)
    written: list[Path] = []
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        for number, view in enumerate(views):
            for name, picture in pictures_of(view).items():
                path = Path(folder) / f"{_prefix(views, number)}{name}.png"
                with styled():
                    picture.savefig(path, dpi=_PNG_DPI)
                written.append(path)
        if not views:
            path = Path(folder) / "ownership.png"
            with styled():
                message("There are no events in these files.").savefig(path, dpi=_PNG_DPI)
            written.append(path)
    except OSError as err:
        raise ConfigError(f"{os.fspath(folder)}: {err.strerror or err}") from err
    return written


def _prefix(views: Sequence[GroupView], number: int) -> str:
    """A file name from the group's name and number, valid on any file system."""
    if len(views) == 1:
        return ""
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", views[number].group_id)[:60].strip(".")
    return f"{number + 1:02d}-{name}-"


def _svg(picture: Figure) -> str:
    """The element ``svg``, which scales with the page."""
    from kip848_client.history.report._style import styled

    text = io.StringIO()
    with styled():
        picture.savefig(text, format="svg", dpi=_SVG_DPI, metadata={"Date": None, "Creator": None})
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    head, rest = svg.split(">", 1)
    head = re.sub(r'\s(width|height)="[^"]*pt"', "", head)
    return f"{head}>{rest}"
