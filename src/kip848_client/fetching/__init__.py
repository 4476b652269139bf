"""The way of a record, from the broker's log to the application: a pure core.

``FetchCore`` decides what is asked of whom, and knows what may be handed out. Time comes in as an
argument, events in, commands out. Its driver has the sockets, ``kip848_client.records`` makes
records of what it holds.
"""
