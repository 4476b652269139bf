"""Exactly once in virtual time: processors, each of a real ``ProcessorCore`` with the cores of its
consumer and its producer, read topics and write others over a bad network, while leaders and
coordinators move, brokers stop, sessions and transactions time out, and processes crash, sleep, or
get rivals with their transactional ids.

One seed is one world, as in the simulation of groups; ``python -m mock_coordinator.sim
--exactly-once`` plays it.
"""
