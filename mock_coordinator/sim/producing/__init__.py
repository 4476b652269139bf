"""Producers in virtual time: real ``ProducerCore``s, plain and transactional, write to the brokers
of the mock over a bad network, while leaders and coordinators move, brokers stop, transactions time
out, processes crash or sleep, and others take their transactional ids.

One seed is one world, as in the simulation of groups; ``python -m mock_coordinator.sim
--producing`` plays it.
"""
