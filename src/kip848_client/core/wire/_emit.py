"""Generates the source of one encode or decode function; see ``_codec`` for the idea. ``_Source``
has the common parts: the lines, the indentation, names bound to constants, and the grouping of
neighbouring fixed-size fields. Variables are numbered by nesting depth, so unrolled loops never
collide.
"""

from __future__ import annotations

import struct
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any, Final

from kip848_client.core.wire._fields import NEVER, FieldSpec, field_specs
from kip848_client.core.wire._primitives import (
    FIXED,
    MAX_STRING_BYTES,
    PACKERS,
    UNPACKERS,
    bad,
    not_carried,
    read_varint,
    write_varint,
)

__all__ = ["DecoderSource", "EncoderSource"]

_Fields = list[tuple[str, FieldSpec, Any]]

_NULL: Final = {True: b"\xff\xff", False: b"\xff\xff\xff\xff"}
_PACK_LENGTH: Final = {"h": struct.Struct(">h").pack, "i": struct.Struct(">i").pack}
_UNPACK_LENGTH: Final = {"h": struct.Struct(">h").unpack_from, "i": struct.Struct(">i").unpack_from}


class _Source:
    """The lines of a function under construction, and its constants."""

    signature = ""

    def __init__(self, cls: type[Any], version: int, flexible_from: int) -> None:
        self.cls = cls
        self.version = version
        self.flexible = version >= flexible_from >= 0
        self.names: dict[str, Any] = {
            "bad": bad,
            "not_carried": not_carried,
            "write_varint": write_varint,
            "read_varint": read_varint,
            "pack": struct.pack,
            "unpack_from": struct.unpack_from,
            "new": object.__new__,
        }
        self._lines: list[str] = []
        self._indent = 1
        self._numbers = 0

    def text(self) -> str:
        if not self._lines:
            self.body()
        return "\n".join([self.signature, *self._lines])

    def body(self) -> None:
        raise NotImplementedError

    def put(self, line: str) -> None:
        self._lines.append("    " * self._indent + line)

    @contextmanager
    def block(self, line: str) -> Generator[None, None, None]:
        self.put(line)
        self._indent += 1
        yield
        self._indent -= 1

    def fresh(self, prefix: str) -> str:
        self._numbers += 1
        return f"{prefix}{self._numbers}"

    def bind(self, prefix: str, value: Any) -> str:
        """A name for a constant, inside the generated function's globals."""
        for name, known in self.names.items():
            if known is value:
                return name
        name = self.fresh(prefix)
        self.names[name] = value
        return name

    def split(self, cls: type[Any]) -> tuple[_Fields, _Fields, _Fields]:
        """The fields of a struct in this version: in the body, tagged, and not carried."""
        body: _Fields = []
        tagged: _Fields = []
        absent: _Fields = []
        for field in field_specs(cls):
            spec = field[1]
            if self.flexible and self.version in spec.tagged:
                tagged.append(field)
            elif self.version in spec.versions:
                body.append(field)
            else:
                absent.append(field)
        tagged.sort(key=lambda field: field[1].tag)
        return body, tagged, absent

    def runs(self, body: _Fields) -> Iterator[_Fields]:
        """Body fields, neighbours of fixed size in one group."""
        group: _Fields = []
        for field in body:
            if field[1].kind in FIXED:
                group.append(field)
                continue
            if group:
                yield group
                group = []
            yield [field]
        if group:
            yield group


class EncoderSource(_Source):
    """``run(buffer, message)``: appends the message's bytes."""

    signature = "def run(buffer, message):"

    def body(self) -> None:
        self._struct(self.cls, "message", "buffer")

    def _struct(self, cls: type[Any], var: str, buffer: str) -> None:
        body, tagged, absent = self.split(cls)
        for name, spec, default in absent:
            if not spec.ignorable:
                constant = self.bind("default", default)
                with self.block(f"if {var}.{name} != {constant}:"):
                    self.put(f"not_carried('{cls.__name__}.{name}', {self.version})")
        for group in self.runs(body):
            if group[0][1].kind in FIXED:
                letters = ">" + "".join(FIXED[spec.kind][0] for _, spec, _ in group)
                pack = self.bind("pack", struct.Struct(letters).pack)
                values = ", ".join(f"{var}.{name}" for name, _, _ in group)
                self.put(f"{buffer} += {pack}({values})")
            else:
                name, spec, _ = group[0]
                self._value(spec, f"{var}.{name}", buffer, f"{cls.__name__}.{name}")
        if self.flexible:
            self._tags(cls, tagged, var, buffer)
        elif not body:
            self.put("pass")

    def _tags(self, cls: type[Any], tagged: _Fields, var: str, buffer: str) -> None:
        if not tagged:
            self.put(f"{buffer}.append(0)")
            return
        count, tail = self.fresh("count"), self.fresh("tail")
        self.put(f"{count} = 0; {tail} = bytearray()")
        for name, spec, default in tagged:
            constant = self.bind("default", default)
            with self.block(f"if {var}.{name} != {constant}:"):
                part = self.fresh("part")
                self.put(f"{part} = bytearray()")
                where = f"{cls.__name__}.{name}"
                if spec.kind in FIXED:
                    pack = self.bind("pack", struct.Struct(">" + FIXED[spec.kind][0]).pack)
                    self.put(f"{part} += {pack}({var}.{name})")
                else:
                    self._value(spec, f"{var}.{name}", part, where, tagged=True)
                self.put(f"{count} += 1; write_varint({tail}, {spec.tag})")
                self.put(f"write_varint({tail}, len({part})); {tail} += {part}")
        self.put(f"write_varint({buffer}, {count}); {buffer} += {tail}")

    def _value(
        self, spec: FieldSpec, expression: str, buffer: str, where: str, *, tagged: bool = False
    ) -> None:
        var = self.fresh("v")
        self.put(f"{var} = {expression}")
        nullable = self.version in spec.nullable
        if spec.kind == "uuid":
            with self.block(f"if len({var}) != 16:"):
                self.put(f"bad('{where}', 'a uuid has 16 bytes')")
            self.put(f"{buffer} += {var}")
            return
        if not nullable:
            with self.block(f"if {var} is None:"):
                self.put(f"bad('{where}', 'null is not allowed in version {self.version}')")
            self._present(spec, var, buffer, where)
            return
        with self.block(f"if {var} is None:"):
            self._null(spec, buffer, tagged=tagged)
        with self.block("else:"):
            if spec.kind == "struct":
                self.put(f"{buffer}.append(1)")
            self._present(spec, var, buffer, where)

    def _null(self, spec: FieldSpec, buffer: str, *, tagged: bool) -> None:
        if spec.kind == "struct":  # Kafka's tagged structs have another byte for null
            self.put(f"{buffer}.append({0 if tagged else 255})")
        elif self.flexible:
            self.put(f"{buffer}.append(0)")
        else:
            constant = self.bind("null", _NULL[spec.kind == "string"])
            self.put(f"{buffer} += {constant}")

    def _present(self, spec: FieldSpec, var: str, buffer: str, where: str) -> None:
        if spec.kind == "struct":
            assert isinstance(spec.element, type)
            self._struct(spec.element, var, buffer)
        elif spec.kind == "string":
            raw = self.fresh("raw")
            self.put(f"{raw} = {var}.encode()")
            with self.block(f"if len({raw}) > {MAX_STRING_BYTES}:"):
                self.put(f"bad('{where}', 'a string of more than {MAX_STRING_BYTES} bytes')")
            self._length(f"len({raw})", buffer, "h")
            self.put(f"{buffer} += {raw}")
        elif spec.kind == "bytes":
            self._length(f"len({var})", buffer, "i")
            self.put(f"{buffer} += {var}")
        else:
            self._array(spec, var, buffer, where)

    def _array(self, spec: FieldSpec, var: str, buffer: str, where: str) -> None:
        self._length(f"len({var})", buffer, "i")
        if isinstance(spec.element, type):
            item = self.fresh("item")
            with self.block(f"for {item} in {var}:"):
                self._struct(spec.element, item, buffer)
        elif spec.element in FIXED:
            packers = self.bind("packers", PACKERS[FIXED[spec.element][0]])
            count = self.fresh("count")
            self.put(f"{count} = len({var})")
            with self.block(f"if {count} < {len(PACKERS['i'])}:"):
                self.put(f"{buffer} += {packers}[{count}](*{var})")
            with self.block("else:"):
                self.put(f"{buffer} += pack('>%d{FIXED[spec.element][0]}' % {count}, *{var})")
        else:
            item = self.fresh("item")
            element = FieldSpec(
                str(spec.element), spec.versions, NEVER, NEVER, -1, None, ignorable=False
            )
            with self.block(f"for {item} in {var}:"):
                self._value(element, item, buffer, where)

    def _length(self, expression: str, buffer: str, letter: str) -> None:
        if not self.flexible:
            pack = self.bind("pack", _PACK_LENGTH[letter])
            self.put(f"{buffer} += {pack}({expression})")
            return
        length = self.fresh("n")
        self.put(f"{length} = {expression} + 1")
        with self.block(f"if {length} < 128:"):
            self.put(f"{buffer}.append({length})")
        with self.block("else:"):
            self.put(f"write_varint({buffer}, {length})")


class DecoderSource(_Source):
    """``run(data, p, size)``: reads a message at ``p``; returns it and the position after it.

    A missing struct is one shared object for all rows of a message (there can be thousands):
    replace it, do not change it.
    """

    signature = "def run(data, p, size):"

    def body(self) -> None:
        self._missing: dict[str, str] = {}
        """Class to the local name of its default."""
        self._struct(self.cls, "message")
        self.put("return message, p")
        self._lines[:0] = [f"    {name} = {cls}()" for cls, name in self._missing.items()]

    def _struct(self, cls: type[Any], var: str) -> None:
        body, tagged, absent = self.split(cls)
        self.put(f"{var} = new({self.bind('cls', cls)})")
        for name, spec, default in [*absent, *tagged]:
            self._default(spec, f"{var}.{name}", default)
        for group in self.runs(body):
            if group[0][1].kind in FIXED:
                self._fixed(group, var)
            else:
                name, spec, _ = group[0]
                self._value(spec, f"{var}.{name}", f"{cls.__name__}.{name}")
        if self.flexible:
            self._tags(cls, tagged, var)

    def _default(self, spec: FieldSpec, target: str, default: Any) -> None:
        if spec.kind == "struct" and default is not None:
            cls = self.bind("cls", spec.element)
            if cls not in self._missing:
                self._missing[cls] = self.fresh("none")
            self.put(f"{target} = {self._missing[cls]}")
        else:
            self.put(f"{target} = {self.bind('default', default)}")

    def _fixed(self, group: _Fields, var: str) -> None:
        layout = struct.Struct(">" + "".join(FIXED[spec.kind][0] for _, spec, _ in group))
        unpack = self.bind("unpack", layout.unpack_from)
        targets = ", ".join(f"{var}.{name}" for name, _, _ in group)
        self.put(f"{targets}, = {unpack}(data, p); p += {layout.size}")

    def _tags(self, cls: type[Any], tagged: _Fields, var: str) -> None:
        count = self.fresh("count")
        self.put(f"{count} = data[p]; p += 1")
        with self.block(f"if {count}:"):
            with self.block(f"if {count} > 127:"):
                self.put(f"{count}, p = read_varint(data, p - 1)")
            with self.block(f"if {count} > size - p:"):
                self.put(f"bad('{cls.__name__}', 'more tagged fields than bytes')")
            tag, end = self.fresh("tag"), self.fresh("end")
            with self.block(f"for _ in range({count}):"):
                self.put(f"{tag}, p = read_varint(data, p); {end}, p = read_varint(data, p)")
                self.put(f"{end} += p")
                with self.block(f"if {end} > size:"):
                    self.put(f"bad('{cls.__name__}', 'a tagged field runs past the end')")
                for name, spec, _ in tagged:
                    with self.block(f"if {tag} == {spec.tag}:"):
                        if spec.kind in FIXED:
                            self._fixed([(name, spec, None)], var)
                        else:
                            self._value(
                                spec, f"{var}.{name}", f"{cls.__name__}.{name}", tagged=True
                            )
                        with self.block(f"if p != {end}:"):
                            self.put(f"bad('{cls.__name__}.{name}', 'tagged size does not match')")
                self.put(f"p = {end}")

    def _value(self, spec: FieldSpec, target: str, where: str, *, tagged: bool = False) -> None:
        nullable = self.version in spec.nullable
        if spec.kind == "uuid":
            self.put(f"{target} = data[p:p + 16]; p += 16")
            return
        if spec.kind == "struct":
            self._nested(spec, target, where, nullable=nullable, tagged=tagged)
            return
        length = self.fresh("n")
        self._length(length, "h" if spec.kind == "string" else "i")
        with self.block(f"if {length} < 0:"):
            with self.block(f"if {length} != -1:"):
                self.put(f"bad('{where}', 'negative length')")
            if nullable:
                self.put(f"{target} = None")
            else:
                self.put(f"bad('{where}', 'null is not allowed in version {self.version}')")
        with self.block("else:"):
            self._present(spec, target, length, where)

    def _nested(
        self, spec: FieldSpec, target: str, where: str, *, nullable: bool, tagged: bool
    ) -> None:
        assert isinstance(spec.element, type)
        inner = self.fresh("s")
        if not nullable:
            self._struct(spec.element, inner)
            self.put(f"{target} = {inner}")
            return
        marker = self.fresh("marker")
        self.put(f"{marker} = data[p]; p += 1")
        with self.block(f"if {marker} > 127{f' or not {marker}' if tagged else ''}:"):
            self.put(f"{target} = None")
        with self.block(f"elif {marker} != 1:"):
            self.put(f"bad('{where}', 'neither null nor present')")
        with self.block("else:"):
            self._struct(spec.element, inner)
            self.put(f"{target} = {inner}")

    def _present(self, spec: FieldSpec, target: str, length: str, where: str) -> None:
        if spec.kind == "string":
            with self.block(f"if {length} > {MAX_STRING_BYTES}:"):
                self.put(f"bad('{where}', 'a string of more than {MAX_STRING_BYTES} bytes')")
            self.put(f"{target} = data[p:p + {length}].decode(); p += {length}")
        elif spec.kind == "bytes":
            self.put(f"{target} = data[p:p + {length}]; p += {length}")
        else:
            self._array(spec, target, length, where)

    def _array(self, spec: FieldSpec, target: str, length: str, where: str) -> None:
        letter, width = FIXED.get(str(spec.element), ("", 16 if spec.element == "uuid" else 1))
        with self.block(f"if {length} * {width} > size - p:"):
            self.put(f"bad('{where}', 'more elements than bytes')")
        if letter:
            unpackers = self.bind("unpackers", UNPACKERS[letter])
            with self.block(f"if {length} < {len(UNPACKERS['i'])}:"):
                self.put(f"{target} = {unpackers}[{length}](data, p)")
            with self.block("else:"):
                self.put(f"{target} = unpack_from('>%d{letter}' % {length}, data, p)")
            self.put(f"p += {length} * {width}")
            return
        items, item = self.fresh("items"), self.fresh("item")
        self.put(f"{items} = []")
        with self.block(f"for _ in range({length}):"):
            if isinstance(spec.element, type):
                self._struct(spec.element, item)
            else:
                element = FieldSpec(
                    str(spec.element), spec.versions, NEVER, NEVER, -1, None, ignorable=False
                )
                self._value(element, item, where)
            self.put(f"{items}.append({item})")
        self.put(f"{target} = tuple({items})")

    def _length(self, var: str, letter: str) -> None:
        if not self.flexible:
            layout = _UNPACK_LENGTH[letter]
            unpack = self.bind("unpack", layout)
            self.put(f"{var}, = {unpack}(data, p); p += {2 if letter == 'h' else 4}")
            return
        self.put(f"{var} = data[p] - 1; p += 1")
        with self.block(f"if {var} > 126:"):
            self.put(f"{var}, p = read_varint(data, p - 1); {var} -= 1")
