"""Table of decision 0016: its encoding and decoding in Python, and the plug-in's C code, which
reads the same values.
"""

from __future__ import annotations

import struct
import subprocess
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairbank.core.errors import InvalidInput
from fairbank.core.slurm_numbers import NICE_MAX
from fairbank.slurm.site_factor import TABLE_SIZE_MAX, SiteFactorTable, decode, encode
from tests.slurm.reconcile.jobs import NOW
from tests.slurm.site_factor import SANITIZERS, compiled, value_of

names = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=63)
short = st.text("abXY09_-.", min_size=1, max_size=3)
resources = st.text("abcxyz09_-", min_size=1, max_size=39)
values = st.integers(-NICE_MAX, NICE_MAX)
tables = st.builds(
    SiteFactorTable,
    written=st.integers(0, 2**63 - 1),
    stale_seconds=st.integers(0, 2**31 - 1),
    resources=st.dictionaries(names | short, resources | short.map(str.lower), max_size=8),
    values=st.dictionaries(
        st.tuples(names | short, resources | short.map(str.lower)), values, max_size=20
    ),
)


@given(table=tables)
def test_every_table_reads_back(table: SiteFactorTable) -> None:
    assert decode(encode(table)) == table


def test_encoding_is_the_documented_one() -> None:
    table = SiteFactorTable(
        1_700_000_000, 600, {"gpu": "a100"}, {("chem", "a100"): -2, ("chem", "cpu"): 70_000}
    )
    summed = struct.pack("<QIIII", 1_700_000_000, 600, 1, 2, 0)
    for name, resource, value in (
        (b"gpu", b"a100", 0),
        (b"chem", b"a100", -2),
        (b"chem", b"cpu", 70_000),
    ):
        summed += name.ljust(256, b"\0") + resource.ljust(40, b"\0") + struct.pack("<iI", value, 0)
    assert encode(table) == b"FBSITEF\n" + struct.pack("<II", 2, zlib.crc32(summed)) + summed


@pytest.mark.parametrize(
    "table",
    [
        SiteFactorTable(0, 1, {"a\nb": "cpu"}, {}),
        SiteFactorTable(0, 1, {"": "cpu"}, {}),
        SiteFactorTable(0, 1, {"x" * 256: "cpu"}, {}),
        SiteFactorTable(0, 1, {"cpu": "y" * 40}, {}),
        SiteFactorTable(0, 1, {}, {("ä" * 128, "cpu"): 1}),
        SiteFactorTable(0, 1, {}, {("a", "cpu"): NICE_MAX + 1}),
        SiteFactorTable(-1, 1, {}, {}),
        SiteFactorTable(0, 2**31, {}, {}),
        SiteFactorTable(
            0, 1, {}, {(str(number), "cpu"): 1 for number in range(TABLE_SIZE_MAX // 304 + 1)}
        ),
    ],
    ids=[
        "line end",
        "empty",
        "long",
        "long resource",
        "long UTF-8",
        "value",
        "written",
        "stale",
        "rows",
    ],
)
def test_invalid_table_is_not_encoded(table: SiteFactorTable) -> None:
    with pytest.raises(InvalidInput):
        encode(table)


# ---------------------------------------------------------------- C code of the plug-in


@pytest.fixture(scope="module")
def check(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(checkout, tmp_path_factory.mktemp("c"), SANITIZERS[0])


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("table") / "table"


def program_output(check: Path, file: Path, text: bytes, now: int, queries: str = "") -> list[str]:
    file.write_bytes(text)
    process = subprocess.run(
        [check, file, str(now)], input=queries, capture_output=True, text=True, check=False
    )
    assert (process.returncode, process.stderr) == (0, "")
    return process.stdout.splitlines()


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(table=tables, data=st.data())
def test_plugin_finds_every_value(
    check: Path, file: Path, table: SiteFactorTable, data: st.DataObject
) -> None:
    accounts = sorted({account for account, _ in table.values} | {"nobody"})
    queries = [
        (account, partition)
        for account in accounts
        for partition in [*sorted(table.resources), "nowhere"]
    ]
    age = data.draw(
        st.sampled_from([0, table.stale_seconds, table.stale_seconds + 1, -table.stale_seconds - 1])
    )
    now = min(table.written + age, 2**63 - 1)
    output = program_output(
        check,
        file,
        encode(table),
        now,
        "".join(f"{account}\t{partition}\n" for account, partition in queries),
    )
    assert output == [str(value_of(table, *query, now)) for query in queries]


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(table=tables, data=st.data())
def test_plugin_refuses_the_same_damaged_tables(
    check: Path, file: Path, table: SiteFactorTable, data: st.DataObject
) -> None:
    changed = bytearray(encode(table))
    for _ in range(data.draw(st.integers(1, 3))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(
            st.sampled_from(b"\x00\n\x7f\x80\xffaZ")
        )
    if data.draw(st.booleans()):
        del changed[data.draw(st.integers(0, len(changed))) :]
    if len(changed) >= 40 and data.draw(st.booleans()):
        changed[12:16] = struct.pack("<I", zlib.crc32(changed[16:]))
    try:
        decode(bytes(changed))
        expected = []
    except InvalidInput as error:
        expected = [error.message]
    output = program_output(check, file, bytes(changed), 0)
    assert [message.replace("is not known to this plug-in", "") for message in output] == [
        "its version " if message.startswith("its version") else message for message in expected
    ]


def row(name: bytes = b"chem", resource: bytes = b"cpu", value: int = 1, nothing: int = 0) -> bytes:
    return name.ljust(256, b"\0") + resource.ljust(40, b"\0") + struct.pack("<iI", value, nothing)


def raw(
    *rows: bytes,
    partitions: int = 0,
    version: int = 2,
    written: int = NOW,
    stale: int = 60,
    nothing: int = 0,
    count: int = 0,
) -> bytes:
    head = struct.pack(
        "<QIIII", written, stale, partitions, count or len(rows) - partitions, nothing
    )
    summed = head + b"".join(rows)
    return b"FBSITEF\n" + struct.pack("<II", version, zlib.crc32(summed)) + summed


WRONG = {
    "another version": (raw(version=1), "its version is"),
    "too few rows": (raw(row(), count=2), "its length is not what its head says"),
    "more rows than memory": (
        raw(row(), partitions=2**32 - 1, count=2**32 - 1),
        "its length is not what its head says",
    ),
    "a bit too much": (raw(row()) + b"x", "its length is not what its head says"),
    "no table": (b"x" * 200, "it is not a table of site factors"),
    "half a head": (raw()[:39], "it is not a table of site factors"),
    "checksum": (raw()[:12] + bytes(4) + raw()[16:], "its checksum is wrong"),
    "stale too late": (raw(stale=2**31), "its head is wrong"),
    "written too late": (raw(written=2**63), "its head is wrong"),
    "something in the head": (raw(nothing=1), "its head is wrong"),
    "something in a row": (raw(row(nothing=1)), "one of its rows is wrong"),
    "value too great": (raw(row(value=NICE_MAX + 1)), "one of its rows is wrong"),
    "value too small": (raw(row(value=-NICE_MAX - 1)), "one of its rows is wrong"),
    "no name": (raw(row(b"")), "one of its rows is wrong"),
    "a name without an end": (raw(row(b"x" * 256)), "one of its rows is wrong"),
    "a resource without an end": (raw(row(resource=b"x" * 40)), "one of its rows is wrong"),
    "something after the name": (raw(row(b"chem\0bio")), "one of its rows is wrong"),
    "a line end in a name": (raw(row(b"a\nb")), "one of its rows is wrong"),
    "a DEL in a name": (raw(row(b"a\x7f")), "one of its rows is wrong"),
    "a row twice": (raw(row(), row()), "its rows are not in order"),
    "rows out of order": (raw(row(b"b"), row(b"a")), "its rows are not in order"),
    "resources out of order": (
        raw(row(resource=b"b"), row(resource=b"a")),
        "its rows are not in order",
    ),
    "a partition of two resources": (
        raw(row(resource=b"a"), row(resource=b"b"), partitions=2),
        "its rows are not in order",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_damaged_table_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match=WRONG[name][1]):
        decode(WRONG[name][0])


def test_bytes_that_are_not_utf8_are_replaced_in_names() -> None:
    """The plug-in compares bytes and refuses none of these."""
    assert decode(raw(row(b"\x80"))).values == {("\ufffd", "cpu"): 1}


@pytest.mark.slow
def test_plugin_refuses_damaged_tables(check: Path, file: Path) -> None:
    outputs = {name: program_output(check, file, text, NOW) for name, (text, _) in WRONG.items()}
    assert {name: message[0][: len(WRONG[name][1])] for name, message in outputs.items()} == {
        name: reason for name, (_, reason) in WRONG.items()
    }
    assert (
        decode(raw(row(), row(b"chem", b"gpu", -NICE_MAX), row(b"d", value=NICE_MAX))).values[
            "d", "cpu"
        ]
        == NICE_MAX
    )


@pytest.mark.slow
def test_largest_table_is_read(check: Path, file: Path) -> None:
    count = (TABLE_SIZE_MAX - 40) // 304 - 1
    table = SiteFactorTable(
        NOW, 60, {"cpu": "cpu"}, {(f"a{number}", "cpu"): number for number in range(count)}
    )
    assert program_output(
        check, file, encode(table), NOW, f"a0\tcpu\na{count - 1}\tcpu\na{count}\tcpu\n"
    ) == ["0", str(count - 1), "0"]
    assert program_output(check, file, encode(table) + bytes(304), NOW) == [
        "its length is not what its head says"
    ]
