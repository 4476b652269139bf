"""``python -m kip848_client.core.wire ConsumerGroupHeartbeatRequest 1`` prints the generated
codec."""

from __future__ import annotations

import sys

from kip848_client.core.wire._codec import source
from kip848_client.core.wire.registry import APIS
from kip848_client.errors import UnsupportedVersion

__all__ = ["main"]


def main(arguments: list[str]) -> int:
    """Print the source for a message class and a version; exit code 2 if it does not exist."""
    classes = {cls.__name__: cls for api in APIS.values() for cls in (api.request, api.response)}
    if len(arguments) != 2 or arguments[0] not in classes or not arguments[1].isdecimal():
        sys.stderr.write("usage: python -m kip848_client.core.wire MESSAGE VERSION\n")
        sys.stderr.write("messages: " + ", ".join(sorted(classes)) + "\n")
        return 2
    try:
        text = source(classes[arguments[0]], int(arguments[1]))
    except UnsupportedVersion as err:
        sys.stderr.write(f"{err}\n")
        return 2
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
