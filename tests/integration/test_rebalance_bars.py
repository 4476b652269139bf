"""How long a rebalance may take: the bars of ``python -m benchmarks rebalance``, on real Kafka."""

from __future__ import annotations

import pytest

from benchmarks.bench_rebalance import bars_of, main
from benchmarks.rebalance.story import CHANGES, GROWTH, Seen
from tests.support.kafka_jars import kafka_libs
from tests.support.pytest_kafka import chosen_versions, skip_without_kafka


def test_growth_has_a_heartbeat_interval_more() -> None:
    for seconds, met in ((9.9, True), (10, False)):
        results = {(GROWTH, 10, "kip848"): [Seen(seconds=seconds)]}
        assert bars_of(results, [10]) == {"+900 partitions, 10 consumers: < 10 s": met}


@pytest.mark.parametrize(("consumers", "limit_s"), [(2, 5), (10, 5), (11, 15), (100, 15)])
def test_a_change_that_takes_too_long_misses_its_bar(consumers: int, limit_s: int) -> None:
    (change, *_) = CHANGES
    bar = f"{change}, {consumers} consumers: < {limit_s} s"
    for seconds, met in ((limit_s - 0.1, True), (limit_s, False)):
        seen = Seen(seconds=seconds)
        assert bars_of({(change, consumers, "kip848"): [seen]}, [consumers]) == {bar: met}


@pytest.mark.real_kafka
@pytest.mark.timeout(240)
def test_ten_and_a_hundred_consumers_settle_within_their_bars(
    request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    """On one release, so that it costs little."""
    release = chosen_versions(request.config)[-1]
    with skip_without_kafka():
        kafka_libs(release)
    options = ["--consumers", "10", "100", "--clients", "kip848", "--rest", "2", "--records", "0"]
    ended = main(["--kafka", release, *options])
    shown = capsys.readouterr().out
    assert ended == 0, shown
    for bar in ("10 consumers: < 5 s: met", "100 consumers: < 15 s: met"):
        assert shown.count(bar) == len(CHANGES) - 1, shown
    assert "+900 partitions, 10 consumers: < 10 s: met" in shown
