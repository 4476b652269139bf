"""What the demos of the command line share: ``kip848 demo``, ``connect demo``, ``pipeline demo``.

``_demo`` runs a script of steps, ``_process`` has the processes that the steps start, stop and
kill, ``_screen`` shows the current state, and ``core/_accounting`` counts records.
"""
