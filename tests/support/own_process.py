"""Programs that a test runs in a process of their own: what they change in modules stays there."""

from __future__ import annotations

import asyncio
import subprocess
import sys

__all__ = ["printed_by"]


async def printed_by(program: str, *arguments: str) -> str:
    """What the program prints, without the white space around it. It must end well, in 55 s."""
    ran = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-W", "ignore", "-c", program, *arguments],
        capture_output=True,
        text=True,
        timeout=55,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    return ran.stdout.strip()
