"""``kip848 report``: a page with pictures of what happened to consumer groups.

``_views`` divides the tables of ``kip848_client.history.core`` by group and gives members readable
names. ``_findings`` states the results in words, one module per picture draws it, and ``_page``
puts everything on one page. The pictures need matplotlib (extra ``report``), which nothing outside
this package imports.
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
