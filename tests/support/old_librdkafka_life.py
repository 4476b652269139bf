"""A group of two classic members, in a process of its own: ``python -m
tests.support.old_librdkafka_life BOOTSTRAP``. Prints the version of librdkafka and each step."""

from __future__ import annotations

import sys

from tests.support.polled_members import ConfluentMember, life_of_a_group

if __name__ == "__main__":
    import confluent_kafka

    print(confluent_kafka.libversion()[0], flush=True)
    for step in life_of_a_group(ConfluentMember, sys.argv[1]):
        print(step, flush=True)
        if step != "both left":
            sys.stdin.readline()  # the test looks at the broker between the steps
