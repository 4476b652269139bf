"""``kip848 report``: a page, and pictures, of what happened to the members of groups.

``_views`` cuts the tables of ``kip848_client.history.core`` into groups and gives members names
that can be read, ``_findings`` says what was found, a module a picture draws it, ``_page`` puts all on
one page. Pictures are matplotlib's (extra ``report``), which nothing outside of this package
imports.
"""

from __future__ import annotations

from kip848_client.history.report._files import pictures_of, write_page, write_pictures
from kip848_client.history.report._findings import Finding, findings_of
from kip848_client.history.report._page import page_of
from kip848_client.history.report._views import GroupView, views_of

__all__ = [
    "Finding",
    "GroupView",
    "findings_of",
    "page_of",
    "pictures_of",
    "views_of",
    "write_page",
    "write_pictures",
]
