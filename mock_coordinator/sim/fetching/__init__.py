"""The way of a record in virtual time: the real ``FetchCore``, real brokers' fetches and sessions
as the mock has them, a bad network, an operator who elects, cuts, compacts and deletes, and a user
who pauses, seeks and reads when it likes.

One seed is one world, as in the simulation of groups. ``python -m mock_coordinator.sim --fetching``
plays it.
"""
