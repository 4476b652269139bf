"""kip848_client."""
