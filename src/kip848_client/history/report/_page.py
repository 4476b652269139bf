"""The page: findings, pictures, then the worst rows, in one self-contained file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Final

from kip848_client.history.core import Tables
from kip848_client.history.recording import Record
from kip848_client.history.report._findings import (
    figures_of,
    findings_of,
    notes_of,
    plural,
    scope_of,
)
from kip848_client.history.report._views import GroupView, duration_text, short

__all__ = ["page_of"]

_ROWS: Final = 10
_CSS: Final = """
:root{--ink:#24292f;--grey:#57606a;--line:#d8dee4;--red:#c1121f;--blue:#33658a}
*{box-sizing:border-box}
body{margin:0;background:#f6f8fa;color:var(--ink);font:15px/1.5 system-ui,"Segoe UI",sans-serif}
main{max-width:1120px;margin:0 auto;padding:32px 20px 64px}
h1{font-size:24px;margin:0 0 4px}h2{font-size:20px;margin:40px 0 2px;overflow-wrap:anywhere}
h3{font-size:15px;margin:28px 0 8px}p{margin:4px 0}.quiet{color:var(--grey)}
.cards{display:flex;flex-wrap:wrap;gap:12px;margin:16px 0}
.card{flex:1 1 170px;background:#fff;border:1px solid var(--line);border-radius:8px}
.card{padding:12px 16px}
.card b{display:block;font-size:24px;line-height:1.25;font-weight:600}
.card span{color:var(--grey);font-size:13px}.card.bad b{color:var(--red)}
ul.found{list-style:none;padding:12px 16px;margin:12px 0;background:#fff}
ul.found{border:1px solid var(--line);border-radius:8px}
ul.found li{padding:3px 0 3px 26px;position:relative;overflow-wrap:anywhere}
ul.found li::before{content:"\\2713";position:absolute;left:2px;color:var(--blue);font-weight:700}
ul.found li.bad::before{content:"!";color:var(--red);left:6px}
figure{margin:16px 0;padding:12px;background:#fff;border:1px solid var(--line);border-radius:8px}
figure svg{display:block;width:100%;height:auto}
details{margin:8px 0}summary{cursor:pointer;color:var(--blue)}
.wide{overflow-x:auto}table{border-collapse:collapse;font-size:13px;background:#fff;margin:8px 0}
th,td{padding:4px 12px;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
th{color:var(--grey);font-weight:600}th.t,td.t{text-align:left}
footer{margin-top:48px;color:var(--grey);font-size:13px}
@media print{body{background:#fff}figure,.card,ul.found{break-inside:avoid}}
"""
_ORDER: Final = ("ownership", "rebalances", "heartbeats", "zombies")
_ALT: Final = {
    "ownership": "One row per partition: its owners over time, and in red the times without one",
    "rebalances": "How long each rebalance took",
    "heartbeats": "How soon heartbeats were answered, and the longest silences",
    "zombies": "Commits of members that had lost their partition",
}


def page_of(
    views: Sequence[GroupView],
    pictures: Sequence[Mapping[str, str]],
    tables: Tables,
    record: Record,
) -> str:
    """Write the page. Raises nothing.

    Args:
        views: The groups.
        pictures: The ``svg`` elements of the first groups, by name of the picture.
        tables: What the page is about.
        record: What was wrong with the files.

    Returns:
        HTML, with everything in it.
    """
    parts = [
        "<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8>",
        '<meta name=viewport content="width=device-width,initial-scale=1">',
        f"<title>{escape(_title(views))}</title><style>{_CSS}</style></head><body><main>",
        f"<h1>{escape(_title(views))}</h1>",
    ]
    if not views:
        parts.append("<p class=quiet>There are no events in these files.</p>")
    for number, view in enumerate(views):
        svgs = pictures[number] if number < len(pictures) else {}
        parts += _group(number, view, svgs, alone=len(views) == 1)
    notes = notes_of(tables, record)
    if notes:
        parts += ["<h3>About these events</h3>", _list((note, True) for note in notes)]
    parts.append(
        "<footer>Made by <code>kip848 report</code>. A member owns a partition from the listener "
        "call that assigns it until the one that revokes or loses it; a member that vanished owned "
        "it until its last sign of life. A rebalance begins with the first event of its epoch, and "
        "ends with the last step of a member in it."
        "</footer></main></body></html>\n"
    )
    return "\n".join(parts)


def _title(views: Sequence[GroupView]) -> str:
    if len(views) == 1:
        return f"Group {short(views[0].group_id, 80)}"
    return f"{len(views)} groups" if views else "No group"


def _group(number: int, view: GroupView, svgs: Mapping[str, str], *, alone: bool) -> Iterable[str]:
    if not alone:
        yield f"<h2>Group {escape(short(view.group_id, 80))}</h2>"
    yield f"<p class=quiet>{escape(scope_of(view))}</p>"
    cards = "".join(
        f"<div class='card{'' if each.good else ' bad'}'><b>{escape(each.value)}</b>"
        f"<span>{escape(each.what)}</span></div>"
        for each in figures_of(view)
    )
    yield f"<div class=cards>{cards}</div>"
    yield _list((each.text, each.good) for each in findings_of(view))
    for name in _ORDER:
        if name in svgs and (name != "zombies" or view.zombie_commits):
            svg = _own_ids(svgs[name], f"g{number}{name[0]}")
            yield f'<figure role=img aria-label="{_ALT[name]}">{svg}</figure>'
    yield from _tables(view)


def _own_ids(svg: str, prefix: str) -> str:
    """Make the ids of a picture unique: several pictures are on one page."""
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}-\1"', svg)
    svg = re.sub(r'(href=")#', rf"\1#{prefix}-", svg)
    return re.sub(r"url\(#", f"url(#{prefix}-", svg)


def _list(items: Iterable[tuple[str, bool]]) -> str:
    lines = "".join(
        f"<li{'' if good else ' class=bad'}>{escape(text)}</li>" for text, good in items
    )
    return f"<ul class=found>{lines}</ul>"


def _tables(view: GroupView) -> Iterable[str]:
    yield _partitions(view)
    yield _rebalances(view)
    yield _heartbeats(view)
    yield _commits(view)


def _partitions(view: GroupView) -> str:
    rows = sorted(view.partition_downtime, key=lambda row: -row.downtime_ms)
    shown = [
        (
            f"{short(row.topic, 60)}-{row.partition}",
            duration_text(row.downtime_ms),
            row.gaps,
            duration_text(row.longest_gap_ms),
            row.owners,
            duration_text(row.overlap_ms),
        )
        for row in rows[:_ROWS]
    ]
    title = "Partitions, by the time without an owner"
    heads = ("partition", "without an owner", "gaps", "longest", "owners", "owned by several")
    return _table(title, heads, shown, len(rows))


def _rebalances(view: GroupView) -> str:
    rows = sorted(view.rebalance_duration, key=lambda row: -row.duration_ms)
    shown = [
        (row.epoch, view.at(row.began_ms), duration_text(row.duration_ms), row.members, row.moved)
        for row in rows[:_ROWS]
    ]
    heads = ("to epoch", "began", "took", "members", "partitions moved")
    return _table("Rebalances, the longest first", heads, shown, len(rows))


def _heartbeats(view: GroupView) -> str:
    rows = sorted(view.heartbeat_sla, key=lambda row: -row.longest_silence_ms)
    shown = [
        (
            view.names.get(row.member_id, short(row.member_id)),
            f"{row.heartbeats:,}",
            row.refused,
            row.lost,
            *(
                "" if each is None else duration_text(each)
                for each in (row.p50_ms, row.p99_ms, row.max_ms)
            ),
            duration_text(row.longest_silence_ms),
        )
        for row in rows[:_ROWS]
    ]
    title = "Heartbeats of members, the longest silence first"
    heads = ("member", "answered", "refused", "lost", "half in", "99 % in", "longest", "silence")
    return _table(title, heads, shown, len(rows))


def _commits(view: GroupView) -> str:
    rows = sorted(view.zombie_commits, key=lambda row: row.outcome != "accepted")
    shown = [
        (
            view.names.get(row.member_id, short(row.member_id)),
            f"{short(row.topic, 60)}-{row.partition}",
            view.at(row.time_ms),
            "stored" if row.outcome == "accepted" else row.outcome,
            short(row.cause or "", 40),
            view.names.get(row.owner or "", ""),
        )
        for row in rows[:_ROWS]
    ]
    title = "Commits of members that had lost their partition, stored ones first"
    heads = ("member", "partition", "when", "outcome", "why", "owner then")
    return _table(title, heads, shown, len(rows))


def _table(title: str, heads: Sequence[str], rows: Sequence[Sequence[object]], count: int) -> str:
    if not rows:
        return ""
    head = "".join(f"<th{_side(number)}>{escape(text)}</th>" for number, text in enumerate(heads))
    body = "".join(
        "<tr>"
        + "".join(f"<td{_side(n)}>{escape(str(cell))}</td>" for n, cell in enumerate(row))
        + "</tr>"
        for row in rows
    )
    more = (
        f" <span class=quiet>({plural(count, 'row')}, {len(rows)} shown)</span>"
        if (count > len(rows))
        else ""
    )
    return (
        f"<details><summary>{escape(title)}{more}</summary><div class=wide><table><tr>{head}</tr>"
        f"{body}</table></div></details>"
    )


def _side(number: int) -> str:
    return " class=t" if number == 0 else ""
