"""Owns what people do with a journal file by hand: look at it, and cut it where it is damaged.

It never repairs anything by itself or guesses at damaged records. Looking takes no lock, so it works on a journal in
use, whose last frame may then look torn. A repair keeps the damaged file under another name, by a second link and
not by a copy, and so needs room only for what is good. Both read the file once. Source: the procedures for media
recovery in Gray and Reuter, "Transaction Processing", 1993, chapter 11, as far as one file without an archive goes.
"""

import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from scheduling import lockfile
from scheduling.entries import Book, unpack
from scheduling.journal import JournalLocked, checked
from scheduling.logfile import Damage, LogFile, read, sync_directory


@dataclass(frozen=True, slots=True)
class Inspection:
    """What a file holds. Sizes are bytes.

    end: where the good frames end. damage: what is behind them, or None. records: how many there are of each kind.
    book: what they add up to.
    """

    size: int
    snapshot_size: int
    end: int
    damage: Damage | None
    records: Counter[str]
    book: Book


def inspect(path: Path) -> Inspection:
    """Read the journal of a delayed scheduler and change nothing.

    Raises JournalCorrupt when its header is damaged, ValueError when its records are of another kind, and OSError.
    """
    found = checked(path)
    book, records = Book(), Counter[str]()
    for record in read(path, found.end):
        records[unpack(record)[0].name.lower()] += 1
        book.apply(record)
    return Inspection(path.stat().st_size, found.header.snapshot_end, found.end, found.damage, records, book)


def repair(path: Path) -> tuple[Damage, Path] | None:
    """Cut a file where its good frames end, and return what was wrong and where the damaged file is kept.

    Returns None when nothing is wrong. Whenever a crash comes, the damaged file or the good one has the name. Raises
    JournalLocked when somebody has it open, JournalCorrupt when not even the header is good, and OSError.
    """
    path = path.resolve(strict=True)
    try:
        lock = lockfile.acquire(path)
    except lockfile.Held as held:
        raise JournalLocked(f"Journal {path} is open in process {held.holder}: stop that first.") from None
    try:
        found = checked(path)
        if found.damage is None:
            return None
        good = path.with_name(path.name + ".tmp")
        # Sequence numbers go on behind the last that may have been given out.
        base = found.header.lsn_at(path.stat().st_size)
        LogFile.create(good, base, read(path, found.end)).close()
        kept = _keep(path)
        good.replace(path)
        sync_directory(path.parent)
        return found.damage, kept
    finally:
        os.close(lock)


def _keep(path: Path) -> Path:
    """Give a file a second name that nothing has."""
    number = 1
    while True:
        kept = path.with_name(f"{path.name}.damaged-{number}")
        try:
            kept.hardlink_to(path)
        except FileExistsError:
            number += 1
        else:
            return kept
