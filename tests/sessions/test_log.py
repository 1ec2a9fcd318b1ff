"""The lines of a log: what was written is read, and whatever became of the file, the rest of it still is."""

from __future__ import annotations

import io
import json
import random
import re
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.sessions.log import Damage, Damaged, LoadedLog, decode_line, encode_line, read_file, read_log
from dragoman.values.errors import InputError
from dragoman.values.record import Entry, Titled, Unknown
from sessions.entries import entry, sessions, some


def written(entries: tuple[Entry, ...]) -> bytes:
    return b"".join(map(encode_line, entries))


def read(data: bytes) -> LoadedLog:
    return read_file(io.BytesIO(data))


@given(entries=sessions())
def test_what_was_written_is_read(entries: tuple[Entry, ...]) -> None:
    data = written(entries)
    assert read(data) == LoadedLog(entries, (), b"", len(data))


@given(entries=sessions())
def test_what_was_read_is_written_again_byte_for_byte(entries: tuple[Entry, ...]) -> None:
    data = written(entries)
    assert written(read(data).entries) == data


def test_a_line_is_json_with_the_checksum_of_what_precedes_it() -> None:
    line = encode_line(Titled(7, 8, "Ärger"))
    assert json.loads(line) == {"kind": "titled", "seq": 7, "timestamp_ms": 8, "title": "Ärger", "crc": line[-11:-3].decode()}
    found = re.fullmatch(rb'(.*),"crc":"([0-9a-f]{8})"\}\n', line)
    assert found
    assert int(found[2], 16) == zlib.crc32(found[1])


def test_the_format_stays_what_it_was() -> None:
    """A line of format 1 as it was first written loads for ever."""
    line = '{"kind":"titled","seq":7,"timestamp_ms":8,"title":"Ärger","crc":"abd62642"}\n'.encode()
    assert decode_line(line) == Titled(7, 8, "Ärger")


@pytest.mark.parametrize(
    "json_text", ['{"kind":"new","seq":3,\n "x":1}', '{"kind":"new","seq":3,"x":1} ', '{"kind":"new","seq":3,"x":"\ud800"}']
)
def test_an_unknown_entry_made_elsewhere_still_takes_one_line(json_text: str) -> None:
    line = encode_line(Unknown(3, 0, json_text))
    assert line.count(b"\n") == 1
    again = decode_line(line)
    assert isinstance(again, Unknown)
    assert again.seq == 3


def test_lines_part_at_newline_bytes_only() -> None:
    """Text that other readers take for the end of a line is none here."""
    one = Titled(1, 1, "a\u2028b\u2029c\u0085d\r\x0b\x0c\x1ce")
    assert read(written((one, Titled(2, 2, "x")))).entries == (one, Titled(2, 2, "x"))


# --- the end of the file (SS02)

TEN = some(10)
BEFORE, LAST = written(TEN[:-1]), encode_line(TEN[-1])


def test_cut_at_every_offset_of_the_last_record_the_others_load() -> None:
    """SS02."""
    for kept in range(len(LAST)):
        assert read(BEFORE + LAST[:kept]) == LoadedLog(TEN[:-1], (), LAST[:kept], len(BEFORE))


@given(tail=st.binary(min_size=1, max_size=300) | st.integers(1, 5000).map(bytes))
def test_any_tail_at_all_is_told_from_the_records(tail: bytes) -> None:
    """SS02: zeros and random bytes, newlines among them."""
    assert read(BEFORE + LAST + tail) == LoadedLog(TEN, (), tail, len(BEFORE + LAST))


@given(kept=st.integers(0, len(LAST) - 1), tail=st.binary(max_size=50) | st.integers(0, 5000).map(bytes))
def test_a_torn_record_with_a_tail_is_one_torn_tail(kept: int, tail: bytes) -> None:
    if (LAST[:kept] + tail).startswith((LAST, LAST[:-1] + b"\r\n")):
        return
    assert read(BEFORE + LAST[:kept] + tail) == LoadedLog(TEN[:-1], (), LAST[:kept] + tail, len(BEFORE))


# --- the middle of it (SS03)

HUNDRED = some(100)
LINES = [encode_line(each) for each in HUNDRED]
OFFSET = sum(map(len, LINES[:49]))
REST = HUNDRED[:49] + HUNDRED[50:]


def test_a_byte_flipped_in_the_middle_costs_one_record() -> None:
    """SS03: every bit of every byte of record 50, its newline aside."""
    for at in range(len(LINES[49]) - 1):
        for bit in range(8):
            flipped = bytearray(LINES[49])
            flipped[at] ^= 1 << bit
            loaded = read(b"".join((*LINES[:49], bytes(flipped), *LINES[50:52])))
            assert loaded.entries == HUNDRED[:49] + HUNDRED[50:52], (at, bit)
            assert loaded.damage[0].line_number == 50
            assert loaded.damage[0].offset == OFFSET
            assert loaded.torn == b""


def test_99_of_100_load_and_the_position_is_told(tmp_path: Path) -> None:
    """SS03: one byte flipped, and the file is as it was."""
    path = tmp_path / "log.jsonl"
    flipped = LINES[49].replace(b"entry 50", b"entry 51")
    path.write_bytes(b"".join((*LINES[:49], flipped, *LINES[50:])))
    before = path.read_bytes()
    loaded = read_log(path)
    assert loaded.entries == REST
    assert loaded.damage == (Damage(50, OFFSET, "its checksum does not match"),)
    assert f"line 50 of the session (byte {OFFSET})" in loaded.notices()[0]
    assert path.read_bytes() == before


def test_the_newline_lost_costs_the_two_records_it_parted() -> None:
    loaded = read(b"".join((*LINES[:49], LINES[49][:-1], *LINES[50:])))
    assert loaded.entries == HUNDRED[:49] + HUNDRED[51:]
    assert len(loaded.damage) == 1


@given(garbage=st.binary(max_size=200))
def test_a_line_replaced_by_garbage_costs_that_record(garbage: bytes) -> None:
    """SS03: whatever stands there now, each line of it is reported."""
    loaded = read(b"".join((*LINES[:49], garbage + b"\n", *LINES[50:])))
    assert loaded.entries == REST
    assert [each.line_number for each in loaded.damage] == [50 + n for n in range(garbage.count(b"\n") + 1)]
    assert loaded.size == sum(map(len, LINES)) - len(LINES[49]) + len(garbage) + 1


def test_damage_is_reported_even_at_the_head() -> None:
    loaded = read(b"garbage\n" + b"".join(LINES[1:]))
    assert loaded.entries == HUNDRED[1:]
    assert loaded.damage == (Damage(1, 0, "no checksum"),)


def test_a_record_that_does_not_follow_is_reported_and_left_out() -> None:
    """Two writers, or a copy gone wrong: never a tangled history, never in silence, and the line stays where it is."""
    data = b"".join((*LINES[:5], LINES[2], *LINES[5:7], LINES[6]))
    loaded = read(data)
    assert loaded.entries == HUNDRED[:7]
    assert [(each.line_number, each.reason) for each in loaded.damage] == [(6, "entry 3 after entry 5"), (9, "entry 7 after entry 7")]
    assert (loaded.torn, loaded.size) == (b"", len(data))


@given(data=st.binary(max_size=400))
def test_bytes_of_any_kind_never_raise(data: bytes) -> None:
    loaded = read(data)
    assert not loaded.entries
    assert loaded.torn == data


@given(seed=st.integers(0, 10**6))
def test_many_wounds_at_once_leave_every_other_record(seed: int) -> None:
    chance = random.Random(seed)
    lines = [bytearray(line) for line in LINES]
    hurt = set(chance.sample(range(99), chance.randint(1, 20)))
    for index in hurt:
        lines[index][chance.randrange(len(lines[index]) - 1)] ^= chance.randint(1, 255)
    loaded = read(b"".join(map(bytes, lines)))
    # A byte that became a newline parts a line in two; no other record is touched by it.
    assert loaded.entries == tuple(each for index, each in enumerate(HUNDRED) if index not in hurt)
    assert len(loaded.damage) >= len(hurt)


def test_a_checksum_over_nonsense_is_damage_all_the_same() -> None:
    for body in (b"[1,2", b'{"seq":4', b'{"kind":3', b"\xff\xfe{", b'{"kind":"x","deep":' + b"[" * 100_000):
        with pytest.raises(Damaged):
            decode_line(b'%b,"crc":"%08x"}\n' % (body, zlib.crc32(body)))


def test_a_link_is_not_read_through(tmp_path: Path) -> None:
    (tmp_path / "real.jsonl").write_bytes(b"".join(LINES))
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "real.jsonl")
    with pytest.raises(InputError, match="symbolic link"):
        read_log(tmp_path / "link.jsonl")
    with pytest.raises(InputError, match="not a regular file"):
        read_log(tmp_path)


def test_entries_by_number_are_told_apart() -> None:
    assert len({encode_line(entry(seq)) for seq in range(1, 200)}) == 199


@given(st.sets(st.integers(0, len(TEN) - 1)))
def test_lines_that_were_converted_to_crlf_are_read_and_counted(converted: set[int]) -> None:
    lines = (BEFORE + LAST).splitlines(keepends=True)
    data = b"".join(line[:-1] + b"\r\n" if number in converted else line for number, line in enumerate(lines))
    loaded = read(data)
    assert loaded == LoadedLog(TEN, (), b"", len(data), crlf=len(converted))
    assert len(loaded.notices()) == bool(converted)
