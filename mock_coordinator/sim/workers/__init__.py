"""Workers of Connect in virtual time: real ``WorkerCore``s share connectors and tasks through the
brokers of the mock over a bad network, while coordinators move, brokers stop, workers are killed,
bounced or sleep, and what there is to run is reconfigured.

One seed is one world, as in the simulation of groups; ``python -m mock_coordinator.sim --workers``
plays it.
"""
