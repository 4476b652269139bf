"""The page and the pictures: of anything, for anybody, and what the words say."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from random import Random

import pytest

from kip848_client.cli import main
from kip848_client.core.types import TopicPartition
from kip848_client.history.core import HistoryEvent, line_of, tables_of
from kip848_client.history.recording import Record
from kip848_client.history.report import findings_of, page_of, views_of, write_page, write_pictures
from tests.support.histories import any_history, event

NOON_MS = 1_800_014_400_000
A0 = TopicPartition("orders", 0)


WORDS = """\
The partition was without an owner at some time, 2 s added up. The longest gap, 2 s, was of \
orders-0, from 12:00:01 on: c-one vanished.
2 rebalances, half of them done in 30 ms. The longest, to epoch 2, took 50 ms.
2 heartbeats answered, 50.0 % of them within 1 s, 1 lost.
1 offset came from members that had lost the partition, and was refused: nothing was overwritten."""


def _story() -> list[HistoryEvent]:
    """One member vanishes, the other takes over after two seconds."""

    def at(ms: int, kind: str, member: str, **said: object) -> HistoryEvent:
        return event(
            kind, NOON_MS + ms, member, group_id="billing", client_id=f"c-{member}", **said
        )

    def seen(ms: int, kind: str, member: str | None, **said: object) -> HistoryEvent:
        of_coordinator: dict[str, object] = {
            "group_id": "billing",
            "role": "coordinator",
            "writer": f"coordinator-{member}",
        }
        return event(kind, NOON_MS + ms, member, **of_coordinator, **said)

    return [
        at(0, "epoch", "one", member_epoch=1),
        at(10, "assigned", "one", partitions=(A0,), member_epoch=1),
        seen(10, "assigned", "one", partitions=(A0,)),
        at(1_000, "heartbeat", "one", member_epoch=1, duration_ms=4),
        seen(2_900, "lost", "one", partitions=(A0,)),
        seen(2_950, "group_epoch", None, group_epoch=2),
        at(3_000, "epoch", "two", member_epoch=2),
        at(3_000, "assigned", "two", partitions=(A0,), member_epoch=2),
        seen(3_000, "assigned", "two", partitions=(A0,)),
        seen(3_500, "commit_refused", "one", partitions=(A0,), cause="UNKNOWN_MEMBER_ID"),
        at(4_000, "heartbeat", "two", member_epoch=2, duration_ms=1_500),
        at(5_000, "heartbeat_lost", "two", duration_ms=900, cause="timed_out"),
        seen(3_300, "heartbeat", "two", member_epoch=2),
    ]


class _Page(HTMLParser):
    """Its words, its ids, and which elements are open."""

    VOID = frozenset({"meta", "link", "br", "img"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.ids += [found["id"] or ""] if "id" in found else []
        self.links += [str(v) for k, v in attrs if k in ("href", "xlink:href", "src")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def _page(tmp_path: Path, events: list[HistoryEvent], record: Record | None = None) -> _Page:
    path = tmp_path / "report.html"
    write_page(path, tables_of(events), record or Record(events=events))
    read = _Page(path.read_text(encoding="utf-8"))
    assert not read.open or read.open == ["html"]
    assert len(set(read.ids)) == len(read.ids), "two elements have one id"
    assert all(link.startswith(("#", "data:")) for link in read.links), "it needs nothing else"
    assert {link[1:] for link in read.links if link[0] == "#"} <= set(read.ids)
    return read


def test_the_words_say_what_happened() -> None:
    (view,) = views_of(tables_of(_story()))
    found = findings_of(view)
    assert [each.good for each in found] == [False, True, False, True]
    assert "\n".join(each.text for each in found) == WORDS


def test_the_page_has_words_pictures_and_rows(tmp_path: Path) -> None:
    page = _page(tmp_path, _story())
    text = " ".join(page.words)
    for words in (
        "Group billing",
        "longest gap of a partition",
        "c-one",
        "Rebalances, the longest",
    ):
        assert words in text
    assert any(each.startswith("g0o-") for each in page.ids), "the picture of ownership is there"


def test_names_from_outside_do_no_harm(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>$x^{$\n\x07"
    events = [
        event("assigned", NOON_MS, evil, group_id=evil, partitions=(TopicPartition(evil, 0),)),
        event("heartbeat", NOON_MS + 9, evil, group_id=evil, duration_ms=3),
        event("assigned", NOON_MS, "b", group_id="../../" + "g" * 300, client_id="x" * 400),
    ]
    page = _page(tmp_path, events)
    assert "script" not in page.open
    assert "<script>" not in (tmp_path / "report.html").read_text(encoding="utf-8")
    written = write_pictures(tmp_path / "png", tables_of(events))
    assert {path.parent for path in written} == {tmp_path / "png"}
    assert all(re.fullmatch(r"[\w.-]+\.png", path.name) for path in written)


@pytest.mark.parametrize("kind", ["assigned", "heartbeat", "epoch", "target", "commit_refused"])
def test_one_event_is_enough(tmp_path: Path, kind: str) -> None:
    one = event(kind, NOON_MS, partitions=(A0,), member_epoch=2, duration_ms=0)
    _page(tmp_path, [one])


def test_no_event_is_a_page_too(tmp_path: Path) -> None:
    assert "There are no events in these files." in _page(tmp_path, []).words
    (only,) = write_pictures(tmp_path, tables_of([]))
    assert only.read_bytes().startswith(b"\x89PNG")


def test_any_history_can_be_shown(tmp_path: Path) -> None:
    for seed in range(3):
        _page(tmp_path, any_history(Random(seed), f"g{seed}", 60))


@pytest.mark.parametrize("time_ms", [0, 1 << 52, (1 << 53) - 1])
def test_times_of_no_calendar_do_no_harm(tmp_path: Path, time_ms: int) -> None:
    last = event("revoked", (1 << 53) - 1, partitions=(A0,))
    _page(tmp_path, [event("assigned", time_ms, partitions=(A0,)), last])


def test_many_partitions_and_members_are_pixels_not_shapes(tmp_path: Path) -> None:
    events: list[HistoryEvent] = []
    for turn in range(4):
        for number in range(0, 400, 4):
            mine = tuple(TopicPartition("orders", number + n) for n in range(4))
            member = f"m{(number // 4 + turn * 7) % 100}"
            at = NOON_MS + turn * 9_000 + number
            events.append(event("assigned", at, member, partitions=mine, seq=2 * at))
            events.append(event("revoked", at + 7_000, member, partitions=mine, seq=2 * at + 1))
    _page(tmp_path, events)
    assert (tmp_path / "report.html").stat().st_size < 1_500_000


def test_what_is_to_be_known_of_the_events_is_told(tmp_path: Path) -> None:
    events = _story()
    gone = [each for each in events if each.kind != "heartbeat_lost"]
    record = Record(events=[*gone, gone[0], event("missed", NOON_MS, count=3)], bad=0, cut=1)
    text = " ".join(_page(tmp_path, record.events, record).words)
    assert "1 event occurred twice; duplicates count once." in text
    assert "missing in these files" in text
    assert "1 file ends in the middle of a line: the writer was killed." in text


def test_a_page_of_no_pictures_is_a_page() -> None:
    tables = tables_of(_story())
    _Page(page_of(views_of(tables), [], tables, Record()))


# -- kip848 report ---------------------------------------------------------------------------


def test_the_command_writes_page_and_pictures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events, page, png = (tmp_path / name for name in ("e.jsonl", "page.html", "png"))
    events.write_bytes(b"".join(map(line_of, _story())) + b"garbage\n" * 5)
    assert main(["report", str(events), "--output", str(page), "--png", str(png)]) == 0
    told = capsys.readouterr()
    assert "group billing\n  ! The partition was without an owner" in told.out
    assert f"{page}\n" in told.out
    assert "line 14 is not an event: it is not JSON" in told.err
    assert "and 2 more lines" in told.err
    assert sorted(path.name for path in png.iterdir()) == [
        *("heartbeats.png", "ownership.png", "rebalances.png", "zombies.png")
    ]
    assert "5 lines are no events" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["{folder}/missing"], "missing: No such file or directory"),
        (["{folder}/binary"], "has no event of a group's history; line 1: it is not text"),
        (["{folder}/good", "--output", "{folder}/no/page.html"], "page.html: No such file"),
        (["{folder}/good", "--output", "{folder}/p", "--png", "{folder}/good"], "File exists"),
        (["{folder}/good", "--heartbeat-sla-ms", "-1"], "less than no time"),
    ],
)
def test_the_command_says_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], why: str
) -> None:
    (tmp_path / "good").write_bytes(b"".join(map(line_of, _story())))
    (tmp_path / "binary").write_bytes(b"PAR1\xff\x00\n" * 9)
    given = [each.replace("{folder}", str(tmp_path)) for each in arguments]
    assert main(["report", *given]) == 2
    told = capsys.readouterr().err
    assert told.startswith("kip848 report: ")
    assert why in told


@pytest.mark.parametrize("events", ["good", "none"])
def test_without_matplotlib_it_says_what_to_install(
    events: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import sys

    story = b"".join(map(line_of, _story())) if events == "good" else b""
    (tmp_path / events).write_bytes(story)
    for name in [each for each in sys.modules if each.startswith("kip848_client.history.report._")]:
        if name.rsplit("._", 1)[1] in ("heartbeats", "ownership", "rebalances", "style", "zombies"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    png = ("--png", str(tmp_path / "png"))
    page = ("--output", str(tmp_path / "p"))
    assert main(["report", str(tmp_path / events), *page, *png]) == 2
    assert "pip install '.[report]'" in capsys.readouterr().err
