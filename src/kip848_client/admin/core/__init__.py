"""The pure part of ``admin``: requests, answers and retries."""
