"""``python -m benchmarks NAME [options]`` runs one benchmark; without a name it lists them."""

from __future__ import annotations

import importlib
import sys
from typing import Final

BENCHMARKS: Final = {
    "wire": "codecs: ours beside kio's and aiokafka's, in microseconds a message",
    "assignors": "server-side assignors, up to 10,000 members x 100,000 partitions",
    "connect_assignors": "Connect's assignors, 100 workers x 10,000 tasks, beside Kafka's class",
    "coordinator": "the bundled coordinator under load, beside librdkafka's mock broker",
    "fetch_core": "the fetch core by itself: milliseconds a step with 4,000 partitions",
    "idle": "idle partitions, many partitions, many consumers: processor, memory, stalls",
    "metrics": "what metrics cost the way of records, when they are off and when they are on",
    "producer_metrics": "the same of a producer",
    "settling": "what extra heartbeats cost the broker with 10,000 members, and what they gain",
    "rebalance": "how fast a group settles on real Kafka, beside confluent-kafka and aiokafka",
    "consume": "records a second out of Kafka, beside aiokafka and confluent-kafka",
    "produce": "records a second into Kafka, and the exactly-once loop, beside the same",
    "spark": "rows a second out of topics by Spark, beside its own source and without Spark",
    "frames": "a topic into Polars and DuckDB on one machine, beside Spark",
    "first_record": "from start() to the first record, and hand-over, beside confluent-kafka",
}


def main(arguments: list[str]) -> int:
    """Run the named benchmark with the remaining arguments; its exit code is ours."""
    if not arguments or arguments[0] not in BENCHMARKS:
        lines = [f"  {name:<14}{what}" for name, what in BENCHMARKS.items()]
        sys.stdout.write("usage: python -m benchmarks NAME [options]\n" + "\n".join(lines) + "\n")
        return 0 if not arguments else 2
    module = importlib.import_module(f"benchmarks.bench_{arguments[0]}")
    code: int = module.main(arguments[1:])
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
