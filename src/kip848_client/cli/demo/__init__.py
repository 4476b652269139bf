"""``kip848 demo``: a consumer group at work, with members that join, leave, crash and come back.

``_story`` is what happens and when, ``_ledger`` keeps the books from which the verdict comes,
``_board`` draws them, ``_stage`` is the broker (ours, or a real one), ``_run`` plays it all.
"""
