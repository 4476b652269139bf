"""Which output belongs to which checkpoint."""

from __future__ import annotations

import pytest

from kip848_client.spark.pipeline._errors import OutputRefused
from kip848_client.spark.pipeline.core._guard import Binding, Checkpoint, check

_BOUND = Binding("id-1", "g", "shared", {})


def _checkpoint(
    query_id: str | None = "id-1", planned: int | None = 4, done: int | None = 3
) -> Checkpoint:
    return Checkpoint("cp", query_id, planned, done)


_NEW = _checkpoint(None, None, None)


def test_what_belongs_together_may_go_on() -> None:
    names = ["_kip848.json", *(f"batch_id={number}" for number in range(5))]
    check("out", names, _BOUND, _checkpoint(), _BOUND)


def test_new_and_new_may_begin() -> None:
    check("out", [], None, _NEW, _BOUND)
    check("out", ["_driver.json", ".crc"], None, _NEW, _BOUND)


def test_a_checkpoint_that_is_at_rest_may_get_a_new_output() -> None:
    check("out", [], None, _checkpoint(planned=4, done=4), _BOUND)


@pytest.mark.parametrize(
    ("names", "binding", "checkpoint", "wanted", "told"),
    [
        (["batch_id=0"], _BOUND, _NEW, _BOUND, "the checkpoint cp is new"),
        ([], _BOUND, _checkpoint("id-2"), _BOUND, "the checkpoint cp has the id id-2"),
        (["batch_id=7"], _BOUND, _checkpoint(), _BOUND, "has batch 7, but .* none after 4"),
        (["batch_id=0"], _BOUND, _checkpoint(planned=None), _BOUND, "none after -1"),
        (
            [],
            _BOUND,
            _checkpoint(),
            Binding("id-1", "h", "shared", {}),
            "source.group changed from 'g' to 'h'",
        ),
        ([], _BOUND, _checkpoint(), Binding("id-1", "g", "exclusive", {}), "source.ownership"),
        ([], _BOUND, _checkpoint(), Binding("id-1", "g", "shared", {}, "jvm"), "source.engine"),
        (["_spark_metadata"], None, _NEW, _BOUND, "Spark's own file sink"),
        (["a.parquet"], None, _NEW, _BOUND, "other files, such as 'a.parquet'"),
        ([], None, _checkpoint(), _BOUND, "has an unfinished batch 4"),
    ],
)
def test_what_does_not_is_refused_with_the_way_out(
    names: list[str],
    binding: Binding | None,
    checkpoint: Checkpoint,
    wanted: Binding,
    told: str,
) -> None:
    with pytest.raises(OutputRefused, match=told):
        check("out", names, binding, checkpoint, wanted)


def test_the_file_says_what_it_belongs_to() -> None:
    assert Binding.of(_BOUND.to_json(), "x") == _BOUND
    for text in ("", "[]", "{}", '{"checkpoint": "a", "topics": []}'):
        with pytest.raises(OutputRefused, match=r"x, .* cannot be read"):
            Binding.of(text, "x")


def test_an_output_by_time_may_go_on_with_any_checkpoint_and_keeps_its_unit() -> None:
    by_hour = Binding("id-1", "g", "shared", {}, layout="hour")
    names = ["_kip848.json", "_offsets.json", "date=2026-11-26"]
    for checkpoint in (_NEW, _checkpoint("id-2"), _checkpoint(planned=4, done=3)):
        check("out", names, by_hour, checkpoint, Binding("", "h", "exclusive", {}, layout="hour"))
    check("out", [], None, _checkpoint(), by_hour)
    for layout, wanted in (("day", by_hour), ("hour", _BOUND)):
        bound = Binding("id-1", "g", "shared", {}, layout=layout)
        with pytest.raises(OutputRefused, match=f"has directories by {layout}, not by "):
            check("out", names, bound, _checkpoint(), wanted)
    with pytest.raises(OutputRefused, match=r"other files, such as 'a\.parquet'"):
        check("out", ["a.parquet"], None, _NEW, by_hour)
    assert Binding.of(by_hour.to_json(), "x") == by_hour
