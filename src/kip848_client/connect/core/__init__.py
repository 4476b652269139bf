"""The pure part of ``connect``: the cores of a worker, on the classic and the new protocol."""
