"""The table of decision 0016: the rule, the bytes there and back, and the plug-in's C, which reads the same from them."""

from __future__ import annotations

import struct
import subprocess
import time
import zlib
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairbank.cluster.partition import Cluster, Partition
from fairbank.slurm.site_factor import SIZE_MAX, VALUE_MAX, Table, credit_factor, decode, encode, expiry_factor, linear, table_of
from fairbank.slurm.sync import replace_file
from fairbank.values.trouble import Malformed
from tests.slurm.beside.jobs import NOW, a_project, an_allocation
from tests.slurm.site_factor import GUARDS, compiled
from tests.support.waiting import wait_until

DAY = 86_400
CLUSTER = Cluster("lab", {"cpu": Partition("cpu", "cpu"), "fat": Partition("fat", "cpu"), "gpu": Partition("gpu", "gpu")})

names = st.text(st.characters(codec="ascii", exclude_categories=["Cc", "Zs"]), min_size=1, max_size=71)
short = st.text("abXY09_-.", min_size=1, max_size=3)
resources = st.text("abcxyz09_-", min_size=1, max_size=39)
values = st.integers(-VALUE_MAX, VALUE_MAX)
tables = st.builds(
    Table,
    written=st.integers(0, 2**63 - 1),
    stale_seconds=st.integers(0, 2**31 - 1),
    resources=st.dictionaries(names | short, resources | short.map(str.lower), max_size=8),
    values=st.dictionaries(st.tuples(names | short, resources | short.map(str.lower)), values, max_size=20),
)
parts = st.fractions(0, 1)

# ---------------------------------------------------------------- the rule


@pytest.mark.parametrize(
    ("deposited", "used", "factor"), [(100, 5, "19/20"), (100, 95, "1/20"), (100, 100, "0"), (100, 130, "0"), (0, 0, "0")]
)
def test_how_much_credit_is_left(deposited: int, used: int, factor: str) -> None:
    assert credit_factor(deposited, used) == Fraction(factor)


@pytest.mark.parametrize(("left", "longest", "factor"), [(10, 100, "9/10"), (100, 100, "0"), (0, 100, "1"), (0, 0, "0")])
def test_how_close_the_end_is(left: int, longest: int, factor: str) -> None:
    assert expiry_factor(left, longest) == Fraction(factor)


@given(credit=parts, expiry=parts, more=parts, weight=st.integers(0, 10**9))
def test_more_credit_and_a_closer_end_never_lower_the_value(credit: Fraction, expiry: Fraction, more: Fraction, weight: int) -> None:
    value = linear(credit, expiry, weight)
    assert 0 <= value <= weight
    assert linear(max(credit, more), expiry, weight) >= value
    assert linear(credit, max(expiry, more), weight) >= value


def of(*allocations: object, projects: object = None, weight: int = 1000) -> dict[tuple[str, str], int]:
    found = projects or [a_project(1, "chem"), a_project(2, "bio")]
    return dict(table_of(CLUSTER, found, allocations, now=NOW, weight=weight, stale_seconds=60).values)  # type: ignore[arg-type]


def granted(number: int, project: int, charged: int, days: int, **more: object) -> object:
    """Of 100 SU-minutes, so many are charged; it ends in so many days."""
    left = 100 - charged - int(str(more.get("held", 0)))
    return an_allocation(number, project, left, deposited=100, charged=charged, end=NOW + days * DAY, **more)


def test_the_value_is_the_product_of_both_factors() -> None:
    found = of(granted(1, 1, 5, 30), granted(2, 2, 50, 100), granted(3, 2, 0, 50, resource="gpu"))
    assert found == {("chem", "cpu"): 665, ("bio", "cpu"): 0, ("bio", "gpu"): 500}  # 0.95 x 0.70, the furthest end, 1 x 0.5


def test_what_is_held_is_not_left() -> None:
    assert of(granted(1, 1, 20, 50, held=30), granted(2, 2, 0, 100))["chem", "cpu"] == 250


def test_the_allocation_that_pays_next_counts() -> None:
    early = granted(1, 1, 100, 10, start=NOW - 2 * DAY)
    late = granted(2, 1, 50, 50, start=NOW - DAY)
    assert of(early, late, granted(3, 2, 0, 100))["chem", "cpu"] == 250
    assert of(early, granted(3, 2, 0, 100))["chem", "cpu"] == 0


def test_a_parent_shares_its_value_with_its_credit() -> None:
    projects = [a_project(1, "chem"), a_project(2, "bio", parent=1)]
    far = granted(9, 3, 0, 100)
    assert of(granted(1, 1, 0, 50, shared=True), far, projects=projects) == {("chem", "cpu"): 500, ("bio", "cpu"): 500}
    assert of(granted(1, 1, 0, 50), far, projects=projects) == {("chem", "cpu"): 500}


def test_only_what_is_active_counts() -> None:
    closed = [
        granted(1, 1, 0, 50, state="frozen"),
        granted(2, 1, 0, 500, start=NOW + DAY, state="planned"),
        granted(3, 1, 0, -1, state="ended"),
    ]
    assert of(*closed, granted(4, 2, 0, 40), granted(5, 2, 0, 80, resource="gpu")) == {("bio", "cpu"): 500, ("bio", "gpu"): 0}


def test_a_bank_without_allocations_is_neutral() -> None:
    assert of() == {}


# ---------------------------------------------------------------- the bytes


@given(table=tables)
def test_every_table_reads_back(table: Table) -> None:
    assert decode(encode(table)) == table


def test_the_form_is_the_one_that_is_written_down() -> None:
    table = Table(1_700_000_000, 600, {"gpu": "a100"}, {("chem", "a100"): -2, ("chem", "cpu"): 70_000})
    summed = struct.pack("<QIIII", 1_700_000_000, 600, 1, 2, 0)
    for name, resource, value in ((b"gpu", b"a100", 0), (b"chem", b"a100", -2), (b"chem", b"cpu", 70_000)):
        summed += name.ljust(72, b"\0") + resource.ljust(40, b"\0") + struct.pack("<iI", value, 0)
    assert encode(table) == b"FBSITEF\n" + struct.pack("<II", 1, zlib.crc32(summed)) + summed


@pytest.mark.parametrize(
    "table",
    [
        Table(0, 1, {"a b": "cpu"}, {}),
        Table(0, 1, {"": "cpu"}, {}),
        Table(0, 1, {"x" * 72: "cpu"}, {}),
        Table(0, 1, {"cpu": "y" * 40}, {}),
        Table(0, 1, {}, {("ä", "cpu"): 1}),
        Table(0, 1, {}, {("a", "cpu"): VALUE_MAX + 1}),
        Table(-1, 1, {}, {}),
        Table(0, 2**31, {}, {}),
        Table(0, 1, {}, {(str(number), "cpu"): 1 for number in range(SIZE_MAX // 120 + 1)}),
    ],
    ids=["blank", "empty", "long", "long resource", "not ASCII", "value", "written", "stale", "rows"],
)
def test_what_cannot_stand_in_it_is_refused(table: Table) -> None:
    with pytest.raises(Malformed):
        encode(table)


def test_a_stale_table_is_neutral() -> None:
    table = Table(NOW, 60, {"cpu": "cpu"}, {("chem", "cpu"): 7})
    assert [table.value("chem", "cpu", NOW + age) for age in (-61, -60, 0, 60, 61)] == [0, 7, 7, 7, 0]
    assert (table.value("bio", "cpu", NOW), table.value("chem", "gpu", NOW)) == (0, 0)


# ---------------------------------------------------------------- the C of the plug-in


@pytest.fixture(scope="module")
def check(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(checkout, tmp_path_factory.mktemp("c"), GUARDS[0])


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("table") / "table"


def said_of(check: Path, file: Path, text: bytes, now: int, questions: str = "") -> list[str]:
    file.write_bytes(text)
    done = subprocess.run([check, file, str(now)], input=questions, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(table=tables, data=st.data())
def test_the_plug_in_finds_every_value(check: Path, file: Path, table: Table, data: st.DataObject) -> None:
    accounts = sorted({account for account, _ in table.values} | {"nobody"})
    asked = [(account, partition) for account in accounts for partition in [*sorted(table.resources), "nowhere"]]
    age = data.draw(st.sampled_from([0, table.stale_seconds, table.stale_seconds + 1, -table.stale_seconds - 1]))
    now = min(table.written + age, 2**63 - 1)
    said = said_of(check, file, encode(table), now, "".join(f"{account} {partition}\n" for account, partition in asked))
    assert said == [str(table.value(*each, now)) for each in asked]


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(table=tables, data=st.data())
def test_the_plug_in_refuses_what_we_refuse(check: Path, file: Path, table: Table, data: st.DataObject) -> None:
    changed = bytearray(encode(table))
    for _ in range(data.draw(st.integers(1, 3))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.sampled_from(b"\x00\n\x7f\x80\xffaZ"))
    if data.draw(st.booleans()):
        del changed[data.draw(st.integers(0, len(changed))) :]
    if len(changed) >= 40 and data.draw(st.booleans()):
        changed[12:16] = struct.pack("<I", zlib.crc32(changed[16:]))
    try:
        decode(bytes(changed))
        expected = []
    except Malformed as bad:
        expected = [bad.message]
    said = said_of(check, file, bytes(changed), 0)
    assert [each.replace("is not known to this plug-in", "") for each in said] == [
        "its version " if each.startswith("its version") else each for each in expected
    ]


@pytest.mark.slow
def test_a_table_as_large_as_may_be(check: Path, file: Path) -> None:
    count = (SIZE_MAX - 40) // 120 - 1
    table = Table(NOW, 60, {"cpu": "cpu"}, {(f"a{number}", "cpu"): number for number in range(count)})
    assert said_of(check, file, encode(table), NOW, f"a0 cpu\na{count - 1} cpu\na{count} cpu\n") == ["0", str(count - 1), "0"]
    assert said_of(check, file, encode(table) + bytes(120), NOW) == ["its length is not what its head says"]


# ---------------------------------------------------------------- the keeper, which looks at the file


class Keeper:
    """The plug-in's thread at work on a file."""

    def __init__(self, program: Path, file: Path) -> None:
        self.file = file
        self.process = subprocess.Popen(
            [program, "keep", file], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.logged: list[str] = []

    def value(self, account: str = "chem", partition: str = "cpu") -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{account} {partition}\n")
        self.process.stdin.flush()
        while (line := self.process.stdout.readline().strip()).startswith(("info ", "error ")):
            self.logged.append(line)
        return int(line)

    def wait_for(self, value: int) -> None:
        wait_until(lambda: self.value() == value, f"the keeper to say {value}")

    def wait_for_line(self, beginning: str, what: str) -> None:
        def told() -> bool:
            self.value()
            return bool(self.logged) and self.logged[-1].startswith(beginning) and what in self.logged[-1]

        wait_until(told, f"the keeper to tell: {what}")

    def write(self, value: int, *, written: float | None = None, stale: int = 600) -> None:
        table = Table(int(time.time() if written is None else written), stale, {"cpu": "cpu"}, {("chem", "cpu"): value})
        replace_file(self.file, encode(table))


@pytest.fixture(params=GUARDS)
def keeper(request: pytest.FixtureRequest, checkout: Path, tmp_path: Path) -> Iterator[Keeper]:
    found = Keeper(compiled(checkout, tmp_path, request.param), tmp_path / "table")
    try:
        yield found
        _, said = found.process.communicate(timeout=20)
        assert (found.process.returncode, said) == (0, "")
    finally:
        found.process.kill()


@pytest.mark.slow
def test_a_new_table_is_seen_and_each_trouble_is_told_once(keeper: Keeper) -> None:
    keeper.wait_for_line("error", "No such file")
    assert keeper.value() == 0
    keeper.write(7)
    keeper.wait_for(7)
    keeper.wait_for_line("info", "in use")
    keeper.write(-8)
    keeper.wait_for(-8)
    keeper.write(9, written=time.time() - 601)
    keeper.wait_for(0)
    keeper.wait_for_line("error", "stale")
    keeper.write(9, written=time.time() + 3_600)
    keeper.wait_for(0)
    keeper.write(10)
    keeper.wait_for(10)
    keeper.file.write_bytes(b"FBSITEF\n")  # shortened in place, as no agent would
    keeper.wait_for(0)
    keeper.wait_for_line("error", "no table")
    keeper.write(11)
    keeper.wait_for(11)
    keeper.file.unlink()
    keeper.wait_for(0)
    keeper.file.mkdir()
    keeper.wait_for_line("error", "no plain file")
    assert [line.split()[0] for line in keeper.logged] == ["error", "info", "error", "info", "error", "info", "error", "error"]


@pytest.mark.slow
def test_a_table_grows_stale_by_itself(keeper: Keeper) -> None:
    keeper.write(7, stale=2)
    keeper.wait_for(7)
    keeper.wait_for(0)
    keeper.wait_for_line("error", "stale")


@pytest.mark.slow
def test_whoever_asks_meanwhile_gets_the_old_or_the_new(keeper: Keeper) -> None:
    keeper.write(1)
    keeper.wait_for(1)
    seen = set()
    for value in range(2, 120):
        keeper.write(value)
        seen |= {keeper.value() for _ in range(20)}
    keeper.wait_for(119)
    assert seen <= set(range(1, 120))
