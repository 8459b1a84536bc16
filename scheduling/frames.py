"""Owns the bytes of a journal file: how records become frames, and how they are read and told from damage.

It never writes, locks or truncates a file. A frame is what one write and one fsync carry: one record or many,
under one checksum. The checksum also covers the frame's place and a random number of the file, so that bytes
which merely look like a frame (a journal inside a payload, a frame of an older file, a block that landed in the
wrong place) do not pass for one. Reading is O(bytes), at one frame of memory. Source: Gray and Reuter,
"Transaction Processing", 1993, chapter 9, the log as a table of records with sequence numbers; the salt is the
idea of SQLite's write-ahead log.
"""

import os
import zlib
from collections.abc import Iterable, Iterator
from struct import Struct
from typing import BinaryIO, Final, NamedTuple, Self

MAGIC: Final = b"\x89DLMJ\r\n\x1a"
"""Opens every file; a transfer as text or cut to seven bits breaks it, as with PNG."""
VERSION: Final = 1
MAX_RECORD: Final = 16 * 2**20
"""Bytes of the largest record."""
MAX_FRAME: Final = 64 * 2**20
"""Bytes of the largest payload of a frame, and so of what `append_many` takes at once."""
GROUP: Final = 2**20
"""Bytes beyond which a group of independent appends is not made larger."""

_HEADER: Final = Struct(">8sH2x4sQQQ")
_CRC: Final = Struct(">I")
_FRAME: Final = Struct(">4sII")
_SEED: Final = Struct(">QQI")
_LENGTH: Final = Struct(">I")

HEADER_SIZE: Final = _HEADER.size + _CRC.size
FRAME_SIZE: Final = _FRAME.size
_CHUNK: Final = 2**20


class BadHeader(ValueError):
    """The first bytes of a file are not those of a journal that this version reads."""


class Header(NamedTuple):
    """What a file says of itself once, when it is made.

    marker: four random bytes that open each of its frames. salt: a random number that its checksums start from.
    base: the log sequence number of its first frame. snapshot_end: the offset in bytes up to which it was complete
    and on disk before it got its name.
    """

    marker: bytes
    salt: int
    base: int
    snapshot_end: int

    @classmethod
    def new(cls, base: int) -> Self:
        """Return the header of an empty file whose first frame has the log sequence number `base`."""
        return cls(os.urandom(4), int.from_bytes(os.urandom(8)), base, HEADER_SIZE)

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        """Return the header that a file opens with. Raises BadHeader, saying what is wrong."""
        if data[: len(MAGIC)] != MAGIC:
            raise BadHeader("it does not begin like a journal")
        if len(data) < HEADER_SIZE:
            raise BadHeader(f"its header of {HEADER_SIZE} bytes ends after {len(data)}")
        _, version, *fields = _HEADER.unpack_from(data)
        if version != VERSION:
            raise BadHeader(f"its format has the version {version}, and this program reads {VERSION}")
        if _CRC.unpack_from(data, _HEADER.size) != (zlib.crc32(data[: _HEADER.size]),):
            raise BadHeader("the checksum of its header is wrong")
        return cls(*fields)

    def pack(self) -> bytes:
        """Return the header as bytes."""
        data = _HEADER.pack(MAGIC, VERSION, *self)
        return data + _CRC.pack(zlib.crc32(data))

    def lsn_at(self, offset: int) -> int:
        """Return the log sequence number of the byte at `offset`."""
        return self.base + offset - HEADER_SIZE

    def frame(self, payload: bytes, offset: int) -> bytes:
        """Return the frame that carries `payload` and stands at `offset`, and nowhere else."""
        return _FRAME.pack(self.marker, len(payload), self.checksum(payload, offset)) + payload

    def checksum(self, payload: bytes, offset: int) -> int:
        """Return the CRC-32 over the salt, the log sequence number, the length and the payload."""
        return zlib.crc32(payload, zlib.crc32(_SEED.pack(self.salt, self.lsn_at(offset), len(payload))))


def pack_record(record: bytes) -> bytes:
    """Return a record as it stands in the payload of a frame."""
    return _LENGTH.pack(len(record)) + record


def unpack_records(payload: bytes) -> Iterator[bytes]:
    """Yield the records of a frame's payload, in their order."""
    position = 0
    while position < len(payload):
        (length,) = _LENGTH.unpack_from(payload, position)
        position += _LENGTH.size + length
        yield payload[position - length : position]


def pack_groups(records: Iterable[bytes]) -> Iterator[bytes]:
    """Yield payloads of about `GROUP` bytes that carry all the records, in their order."""
    parts, size = [], 0
    for record in records:
        parts.append(pack_record(record))
        size += len(parts[-1])
        if size >= GROUP:
            yield b"".join(parts)
            parts, size = [], 0
    if parts:
        yield b"".join(parts)


class Reader:
    """Reads the frames of `file` up to the offset `end` or the first that is not whole.

    `position` is the offset at which the last good frame ends.
    """

    def __init__(self, file: BinaryIO, header: Header, end: int) -> None:
        self.position = HEADER_SIZE
        self._file = file
        self._header = header
        self._end = end

    def __iter__(self) -> Iterator[bytes]:
        """Yield the payload of each frame."""
        self._file.seek(self.position)
        while (payload := self._read(self.position)) is not None:
            self.position += FRAME_SIZE + len(payload)
            yield payload

    def resume(self) -> int | None:
        """Return the offset of the first whole frame anywhere behind `position`, or None.

        O(bytes left): nobody can put the marker, which is random, into a payload on purpose.
        """
        start = self.position + 1
        while True:
            self._file.seek(start)
            chunk = self._file.read(min(_CHUNK, max(0, self._end - start)))
            found = chunk.find(self._header.marker)
            while found >= 0:
                self._file.seek(start + found)
                if self._read(start + found) is not None:
                    return start + found
                found = chunk.find(self._header.marker, found + 1)
            if len(chunk) < FRAME_SIZE:
                return None
            # A marker may lie across the border of two chunks.
            start += len(chunk) - len(self._header.marker) + 1

    def _read(self, offset: int) -> bytes | None:
        """Return the payload of the frame at `offset`, where the file stands, or None if it is not whole."""
        prefix = self._file.read(FRAME_SIZE)
        if len(prefix) < FRAME_SIZE:
            return None
        marker, length, crc = _FRAME.unpack(prefix)
        # The length is not to be trusted before the checksum: what does not fit is not even read.
        if marker != self._header.marker or offset + FRAME_SIZE + length > self._end:
            return None
        payload = self._file.read(length)
        return payload if len(payload) == length and self._header.checksum(payload, offset) == crc else None
