"""The parts of ``python -m benchmarks rebalance``: one group of one client, watched from inside."""
