"""Read Thrift's compact form, in which Parquet keeps its headers, without believing any length in it.

pyarrow's own reader ends the process on some damaged footers. This one knows nothing of Parquet: it returns
nested values, of which every one took at least a byte of the input.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

Value: TypeAlias = "int | bool | bytes | list[Value] | dict[int, Value]"

_DEEPEST = 12
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _BINARY, _LIST, _STRUCT = 1, 2, 3, 4, 5, 6, 8, 9, 12


@dataclass(slots=True)
class ThriftReader:
    """A position in bytes, from which values are read.

    Parameters
    ----------
    data : bytes
    position, end : int
        Where to begin, and where to stop at the latest.
    """

    data: bytes
    position: int
    end: int
    _depth: int = field(default=0, init=False)

    def struct(self) -> dict[int, Value]:
        """Read a structure: its fields by number.

        Raises
        ------
        ValueError
            Where the bytes are none of the kinds of values that Parquet uses, or end too early.
        """
        self._enter()
        fields: dict[int, Value] = {}
        number = 0
        while (head := self._byte()) != 0:
            step, kind = head >> 4, head & 0xF
            number = number + step if step else self._integer()
            if number in fields:
                raise _malformed()
            fields[number] = self._value(kind)
        self._depth -= 1
        return fields

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _malformed()

    def _value(self, kind: int) -> Value:
        if kind in {_TRUE, _FALSE}:
            return kind == _TRUE
        if kind == _BYTE:
            return self._byte()
        if kind in {_I16, _I32, _I64}:
            return self._integer()
        if kind == _BINARY:
            return self._bytes(self._unsigned())
        if kind == _LIST:
            head = self._byte()
            size = head >> 4 if head >> 4 < 15 else self._unsigned()
            self._enter()
            found = [self._element(head & 0xF) for _ in range(min(size, self.end - self.position + 1))]
            self._depth -= 1
            return found
        if kind == _STRUCT:
            return self.struct()
        raise _malformed()

    def _element(self, kind: int) -> Value:
        return self._byte() == _TRUE if kind in {_TRUE, _FALSE} else self._value(kind)

    def _byte(self) -> int:
        if self.position >= self.end:
            raise _malformed()
        self.position += 1
        return self.data[self.position - 1]

    def _bytes(self, size: int) -> bytes:
        if size > self.end - self.position:
            raise _malformed()
        self.position += size
        return self.data[self.position - size : self.position]

    def _unsigned(self) -> int:
        """Read seven bits a byte, the lowest first, at most 64."""
        number = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
        raise _malformed()

    def _integer(self) -> int:
        """Read a signed number: its sign is the last bit."""
        number = self._unsigned()
        return (number >> 1) ^ -(number & 1)


def _malformed() -> ValueError:
    return ValueError("not in Thrift's compact form")
