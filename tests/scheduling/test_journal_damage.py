"""Damaged journals: what a crash explains is cut and reported, everything else is refused, nothing is made up."""

from pathlib import Path

import pytest

from scheduling import Journal, JournalCorrupt, JournalLocked
from scheduling.frames import FRAME_SIZE, HEADER_SIZE, Header, Reader
from scheduling.logfile import examine, read
from scheduling.repair import repair

GROUPS = [[b"first"], [b"second", b"", b"third"], [bytes(40)], [b"fifth"], [b"last", b"of all"]]
"""What the journals of these tests hold: one list per frame."""


def fill(path: Path) -> list[int]:
    """Write the groups and return at which offset each begins, and where the last ends."""
    with Journal(path) as journal:
        borders = [journal.metrics().size]
        for group in GROUPS:
            journal.append_many(group)
            borders.append(journal.metrics().size)
    return borders


def records(groups: int) -> list[bytes]:
    """Return the records of the first groups."""
    return [record for group in GROUPS[:groups] for record in group]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a journal may be."""
    return tmp_path / "journal"


def test_a_file_cut_anywhere_yields_its_longest_whole_prefix(path: Path) -> None:
    """For every length: whole frames come back, the rest is cut and reported, and appending goes on from there."""
    borders = fill(path)
    data = path.read_bytes()
    for length in range(HEADER_SIZE, len(data) + 1):
        path.write_bytes(data[:length])
        whole = sum(border <= length for border in borders) - 1
        with Journal(path) as journal:
            assert list(journal.replay()) == records(whole)
            rest = length - borders[whole]
            assert journal.torn == ((borders[whole], rest) if rest else None)
            assert path.stat().st_size == borders[whole]
            journal.append(b"new")
        with Journal(path) as journal:
            assert journal.torn is None
            assert list(journal.replay()) == [*records(whole), b"new"]


def test_a_file_cut_within_its_header_is_refused(path: Path) -> None:
    """The header was on disk before the file had its name: no crash explains that."""
    fill(path)
    data = path.read_bytes()
    for length in range(HEADER_SIZE):
        path.write_bytes(data[:length])
        with pytest.raises(JournalCorrupt):
            Journal(path)
        assert path.read_bytes() == data[:length]


@pytest.mark.parametrize("flip", [0x01, 0x10, 0x80, 0xFF])
def test_no_changed_byte_goes_unnoticed(path: Path, flip: int) -> None:
    """A change in the last frame is cut with a report, any other is refused with its place; never a wrong record."""
    borders = fill(path)
    data = path.read_bytes()
    for position in range(len(data)):
        changed = bytearray(data)
        changed[position] ^= flip
        path.write_bytes(changed)
        frame = sum(border <= position for border in borders) - 1
        if frame == len(GROUPS) - 1:
            with Journal(path) as journal:
                assert journal.torn == (borders[-2], borders[-1] - borders[-2])
                assert list(journal.replay()) == records(len(GROUPS) - 1)
        else:
            with pytest.raises(JournalCorrupt) as caught:
                Journal(path)
            assert caught.value.offset == (0 if frame < 0 else borders[frame])
            assert path.read_bytes() == changed


def test_damage_in_the_middle_names_file_place_and_ways_out(path: Path) -> None:
    """The text says where, how that is known, and what can be done."""
    borders = fill(path)
    data = bytearray(path.read_bytes())
    data[borders[1] + FRAME_SIZE] ^= 1
    path.write_bytes(data)
    with pytest.raises(JournalCorrupt) as caught:
        Journal(path)
    assert str(caught.value) == (
        f"Journal {path} is damaged at byte {borders[1]}: a whole frame follows at byte {borders[2]}. Restore a "
        f"backup, or run `python -m scheduling repair {path}`: it keeps a copy and cuts it there."
    )


def test_a_group_written_in_pieces_is_torn_as_one(path: Path) -> None:
    """Blocks of the last write that reached the disk before the others do not look like damage in the middle."""
    with Journal(path) as journal:
        journal.append(b"safe")
        end = journal.metrics().size
        journal.append_many([bytes([number]) * 3000 for number in range(5)])
    data = bytearray(path.read_bytes())
    data[end + 4096 : end + 8192] = bytes(4096)
    path.write_bytes(data)
    with Journal(path) as journal:
        assert journal.torn == (end, len(data) - end)
        assert list(journal.replay()) == [b"safe"]


@pytest.mark.parametrize("tail", [bytes(5000), b"\xff" * 5000, b"x"])
def test_whatever_else_is_behind_the_end_is_a_torn_tail(path: Path, tail: bytes) -> None:
    """Zeros of a file that grew before its data came, or anything that is no frame, are cut."""
    borders = fill(path)
    with path.open("ab") as file:
        file.write(tail)
    with Journal(path) as journal:
        assert journal.torn == (borders[-1], len(tail))
        assert list(journal.replay()) == records(len(GROUPS))


def test_a_journal_inside_a_payload_is_not_mistaken_for_frames(path: Path) -> None:
    """A torn frame that carries the journal's own bytes is torn: frames count at their own place only."""
    borders = fill(path)
    with Journal(path) as journal:
        journal.append(path.read_bytes() * 3)
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    with Journal(path) as journal:
        assert journal.torn == (borders[-1], len(data) - 1 - borders[-1])


def test_frames_of_another_journal_are_not_taken(path: Path) -> None:
    """Bytes of an equally long journal, as after a mix-up of blocks, do not pass for this one's."""
    other = path.with_name("other")
    borders = fill(path)
    fill(other)
    data, foreign = path.read_bytes(), other.read_bytes()
    path.write_bytes(data[: borders[2]] + foreign[borders[2] : borders[3]] + data[borders[3] :])
    with pytest.raises(JournalCorrupt) as caught:
        Journal(path)
    assert caught.value.offset == borders[2]


def test_what_a_snapshot_wrote_was_on_disk_and_cannot_be_torn(path: Path) -> None:
    """A file that ends within its snapshot, or has a bad frame there, is refused even if nothing follows."""
    with Journal(path) as journal:
        journal.snapshot([b"a", b"b"])
    data = path.read_bytes()
    for length in range(HEADER_SIZE, len(data)):
        path.write_bytes(data[:length])
        with pytest.raises(JournalCorrupt, match=f"it was whole up to byte {len(data)}") as caught:
            Journal(path)
        assert caught.value.offset == HEADER_SIZE


@pytest.mark.parametrize("distance", range(-5, 3))
def test_a_frame_is_found_across_the_borders_of_what_is_read_at_once(path: Path, distance: int) -> None:
    """Wherever the next whole frame begins, its marker is not missed."""
    size = 2**20 + 1 + distance - FRAME_SIZE - 4
    with Journal(path) as journal:
        journal.append(bytes(size))
        second = journal.metrics().size
        journal.append(b"whole")
    data = bytearray(path.read_bytes())
    data[HEADER_SIZE] ^= 1
    path.write_bytes(data)
    with path.open("rb") as file:
        assert Reader(file, Header.unpack(bytes(data)), len(data)).resume() == second


def test_a_journal_of_a_later_version_is_refused(path: Path) -> None:
    """The text names both versions."""
    fill(path)
    data = bytearray(path.read_bytes())
    data[9] = 7
    path.write_bytes(data)
    with pytest.raises(JournalCorrupt, match="its format has the version 7, and this program reads 1"):
        Journal(path)


def test_a_repair_cuts_there_and_keeps_the_damaged_file(path: Path) -> None:
    """Afterwards the journal opens with what was good before the damage; the damaged file is there, unchanged."""
    borders = fill(path)
    damaged = bytearray(path.read_bytes())
    damaged[borders[2]] ^= 1
    path.write_bytes(damaged)
    damage, kept = repair(path)
    assert (damage.offset, damage.size, damage.torn) == (borders[2], borders[-1] - borders[2], False)
    assert kept.read_bytes() == damaged
    with Journal(path) as journal:
        assert journal.torn is None
        assert list(journal.replay()) == records(2)
        assert journal.append(b"new") > examine(kept).header.lsn_at(len(damaged))
    assert repair(path) is None


def test_a_second_repair_keeps_a_second_file(path: Path) -> None:
    """No kept file is ever written over."""
    kept = []
    for _ in range(2):
        fill(path)
        data = bytearray(path.read_bytes())
        data[HEADER_SIZE] ^= 1
        path.write_bytes(data)
        kept.append(repair(path)[1].name)
    assert kept == ["journal.damaged-1", "journal.damaged-2"]


def test_a_repair_of_a_damaged_snapshot_opens_again(path: Path) -> None:
    """What is left of a snapshot is a whole file once more."""
    with Journal(path) as journal:
        journal.snapshot([bytes(2**20), b"b"])
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    repair(path)
    with Journal(path) as journal:
        assert list(journal.replay()) == [bytes(2**20)]


def test_a_repair_is_refused_while_somebody_has_the_journal_open(path: Path) -> None:
    """The holder is named, and nothing changes."""
    fill(path)
    with Journal(path), pytest.raises(JournalLocked, match=r"is open in process \d+: stop that first"):
        repair(path)


def test_a_header_cannot_be_repaired(path: Path) -> None:
    """Without it no frame can be told from chance: the file is left alone and a backup asked for."""
    fill(path)
    data = bytearray(path.read_bytes())
    data[12] ^= 1
    path.write_bytes(data)
    with pytest.raises(JournalCorrupt, match=r"the checksum of its header is wrong. Restore a backup"):
        repair(path)
    assert path.read_bytes() == data


def test_reading_stops_at_damage_without_changing_anything(path: Path) -> None:
    """A scan by somebody else yields the good records and leaves the file as it is."""
    borders = fill(path)
    with path.open("ab") as file:
        file.write(b"torn")
    assert list(read(path)) == records(len(GROUPS))
    assert path.stat().st_size == borders[-1] + 4
