from collections.abc import Callable
from typing import Any, Self

EDITION: int

class Columns:
    data: Any
    joined: bool
    null_keys: int
    null_values: int
    header_count: int
    null_headers: int
    slots: bytearray
    offsets: bytearray
    timestamps: bytearray
    header_ends: bytearray
    header_slots: bytearray

    def __new__(cls, data: bytes | None = ...) -> Self: ...
    def __len__(self) -> int: ...
    def keys(self) -> list[bytes | None]: ...
    def values(self) -> list[bytes | None]: ...
    def headers(self) -> list[tuple[tuple[str, bytes], ...]]: ...
    def validity(self) -> bytes: ...
    def header_validity(self) -> bytes: ...
    def rows_with_headers(self) -> bytes: ...

class Batch:
    data: bytes

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
        refused: Callable[[int, Exception], None],
        broken: Callable[[str], None],
    ) -> Self: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> Any: ...
    def scan(self, columns: Columns, limit: int) -> int: ...
