"""A schema registry over HTTP, as small as a test needs it: subjects, versions, ids. It can be
down, slow, or answer what no registry should."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit


@dataclass(slots=True)
class FakeRegistry:
    """What it knows, what it was asked, and how it is."""

    url: str = ""
    schemas: dict[int, dict[str, Any]] = field(default_factory=dict[int, dict[str, Any]])
    """By id: ``schema``, ``schemaType``."""
    subjects: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    asked: list[str] = field(default_factory=list[str])
    """``METHOD path`` of each request, also of those that were spoiled."""
    spoiled: tuple[int, bytes] | None = None
    """A status and a body for everything that is asked."""
    well: asyncio.Event = field(default_factory=asyncio.Event)
    """Nothing is answered before."""

    authorization: str | None = None
    """What requests must have in their header of that name."""

    def add(
        self,
        subject: str,
        schema: str,
        kind: str = "AVRO",
        references: list[dict[str, Any]] | None = None,
    ) -> int:
        """Register a schema. Its id; the same schema has the same."""
        told: dict[str, Any] = {"schema": schema, "schemaType": kind}
        if references:
            told["references"] = references
        found = [number for number, each in self.schemas.items() if each == told]
        number = found[0] if found else len(self.schemas) + 1
        self.schemas[number] = told
        versions = self.subjects.setdefault(subject, [])
        if number not in versions:
            versions.append(number)
        return number

    def asked_for(self, part: str) -> int:
        """How many requests had this in their path."""
        return sum(part in each for each in self.asked)

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, Any]:
        """Status and document."""
        url = urlsplit(path)
        query = parse_qs(url.query)
        match method, [unquote(each) for each in url.path.strip("/").split("/")]:
            case "POST", ["subjects", subject, "versions"]:
                given = json.loads(body)
                kind = given.get("schemaType", "AVRO")
                number = self.add(subject, given["schema"], kind, given.get("references"))
                return 200, {"id": number}
            case "POST", ["subjects", subject]:
                wanted = json.loads(body)["schema"]
                for version, number in enumerate(self.subjects.get(subject, ()), start=1):
                    if self.schemas[number]["schema"] == wanted:
                        return 200, self._version(subject, version)
            case "GET", ["schemas", "ids", number]:
                told = self.schemas.get(int(number))
                if told is not None:
                    return 200, told
                return 404, {"error_code": 40403, "message": f"Schema {number} not found"}
            case "GET", ["subjects", subject, "versions", "latest"]:
                if subject in self.subjects:
                    return 200, self._version(subject, len(self.subjects[subject]))
            case "GET", ["subjects", subject, "versions", version]:
                if version.isdecimal() and 0 < int(version) <= len(self.subjects.get(subject, ())):
                    return 200, self._version(subject, int(version))
                return 404, {"error_code": 40402, "message": f"Version {version} not found."}
            case _:
                pass
        return 404, {"error_code": 40401, "message": f"not found: {url.path} {query or ''}"}

    def _version(self, subject: str, version: int) -> dict[str, Any]:
        number = self.subjects[subject][version - 1]
        return {"subject": subject, "version": version, "id": number, **self.schemas[number]}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        try:
            while head := (await reader.readuntil(b"\r\n\r\n")).decode("latin-1"):
                method, path, _ = head.split("\r\n", 1)[0].split(" ")
                sizes = [
                    int(line.partition(":")[2])
                    for line in head.split("\r\n")
                    if line.lower().startswith("content-length:")
                ]
                body = await reader.readexactly(sizes[0]) if sizes else b""
                self.asked.append(f"{method} {path}")
                await self.well.wait()
                if self.authorization is not None and self.authorization not in head:
                    status, raw = 401, b'{"error_code": 40101, "message": "Unauthorized"}'
                elif self.spoiled is not None:
                    status, raw = self.spoiled
                else:
                    status, told = self.answer(method, path, body)
                    raw = json.dumps(told).encode()
                writer.write(b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n" % (status, len(raw)))
                writer.write(raw)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # it was closed
        finally:
            writer.close()


@asynccontextmanager
async def fake_registry() -> AsyncGenerator[FakeRegistry]:
    """One that listens on this machine."""
    registry = FakeRegistry()
    registry.well.set()
    serving: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        serving.add(task)
        try:
            await registry.serve(reader, writer)
        except asyncio.CancelledError:
            pass  # by us, at the end
        finally:
            serving.discard(task)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    registry.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield registry
    finally:
        server.close()
        for task in list(serving):
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
