from collections.abc import Callable
from typing import Any, Self

EDITION: int

Buffers = tuple[int, int, bytes | None, bytearray, bytearray]
"""How many there are, how many of them are null, which (a bitmap), where each ends, all of them."""

class Columns:
    header_count: int
    offsets: bytearray
    timestamps: bytearray
    header_ends: bytearray
    size_bytes: int

    def __new__(cls, expected_bytes: int = ...) -> Self: ...
    def __len__(self) -> int: ...
    def keys(self) -> list[bytes | None]: ...
    def values(self) -> list[bytes | None]: ...
    def headers(self) -> list[tuple[tuple[str, bytes], ...]]: ...
    def microseconds(self) -> tuple[int, bytes | None, bytes]: ...
    def rows_with_headers(self) -> bytes: ...
    def key_buffers(self) -> Buffers: ...
    def value_buffers(self) -> Buffers: ...
    def header_name_buffers(self) -> Buffers: ...
    def header_value_buffers(self) -> Buffers: ...

class Batch:
    left: int
    payload_bytes: int

    def __new__(
        cls,
        data: bytes,
        start: int,
        end: int,
        records: int,
        base_offset: int,
        next_offset: int,
        timestamp: int,
        log_append_time: bool,
        position: int,
        cursor: Any,
        epoch: int,
        topic: str,
        partition: int,
        record_type: type[tuple[Any, ...]],
        key_deserializer: Callable[[Any], Any] | None,
        value_deserializer: Callable[[Any], Any] | None,
        refused: Callable[[Any, BaseException], None],
        odd: Callable[[int, str, bytes, Any], None],
        broken: Callable[[str], None],
    ) -> Self: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> Any: ...
    def scan(self, columns: Columns, limit: int) -> int: ...
