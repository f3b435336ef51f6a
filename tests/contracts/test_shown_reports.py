"""`usage` and `report centre`, `usage` and `balance` of random ledgers over three months: what is
shown adds up, and equals sums in SQL.

Runs end from September to November 2026, in days, weeks and months of Rome, where the clock was set
back on 25 October. Clusters alpha and darwin have the same prices: 100 CPUs and 1 GPU each, at 1 SU
an hour. The prices of cluster far are not known, so its CPUs are another unit.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import date
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from fairbank.bank.requests import Refund, Request, Withdraw
from fairbank.cli import main
from fairbank.cluster.job import JobDetails, Run
from fairbank.core.time import DAY, parse_instant
from fairbank.core.units import SuMinutes
from fairbank.core.usage_groups import OTHERS, UsageBy
from fairbank.report.plots import canvas
from tests.cli.conftest import CommandResult, runner
from tests.cli.conftest import Run as Command
from tests.cli.served_site import serve_site
from tests.contracts.conftest import IN_SQL, places
from tests.contracts.databases import Place
from tests.contracts.small_site import allocation, ask, charge, hold, project

SINCE, UNTIL = parse_instant("2026-09-04T10:00Z"), parse_instant("2026-11-20T10:00Z")
PERIOD = ("-S", "2026-09-04T10:00+00:00", "-E", "2026-11-20T10:00+00:00")
NOW = parse_instant("2026-11-21T12:30:12Z")
"""Time of the served bank."""
SET_BACK = parse_instant("2026-10-25T01:00Z")
ACCOUNTS = ("astro", "bio", "chem")
TERMS = (
    ("2026-08-20", "2026-10-01", "cpu"),
    ("2026-10-01", "2027-01-01", "cpu"),
    ("2026-08-25", "2026-12-25", "gpu"),
)
PARTITIONS = ("std", "idle-std", "gpu-v100")
"""Partitions of runs. The settings of alpha and darwin have not the first."""
SEEDS = [1, *(pytest.param(seed, marks=pytest.mark.campaign) for seed in range(2, 8))]

# Sums over the runs of a group, of one resource and of clusters with the same prices.
SUMS = f"""
WITH closed AS (
  SELECT run.*, run.charged - refunded AS paid, resource, category, account,
    cpus * elapsed_seconds AS given,
    CASE WHEN run.cluster = 'far' THEN 'far' ELSE 'alpha+darwin' END AS clusters,
    CASE WHEN tres LIKE '%gpu=2' THEN 2 WHEN tres LIKE '%gpu=1' THEN 1 ELSE 0 END AS gpus,
    (ended_at + CASE WHEN ended_at < {SET_BACK} THEN 7200 ELSE 3600 END) / {DAY} AS day
  FROM run JOIN allocation ON allocation.id = run.allocation
    JOIN project ON project.id = run.project
  WHERE run.state IN ('charged', 'released') AND ended_at >= {SINCE} AND ended_at < {UNTIL}
)
SELECT GROUPED, resource, clusters, count(*),
  sum(CASE WHEN outcome = 'COMPLETED' THEN 0 ELSE 1 END), sum(paid), sum(elapsed_seconds),
  sum(given), sum(gpus * elapsed_seconds), sum(start_at - submitted),
  sum(coalesce(cpu_seconds, 0)), sum(CASE WHEN cpu_seconds IS NULL THEN 0 ELSE given END),
  sum(CASE WHEN cpu_seconds IS NULL THEN 0
      ELSE (2 * paid * (given - cpu_seconds) + given) / (2 * given) END),
  sum(CASE WHEN outcome = 'FAILED' AND elapsed_seconds <= 120 THEN 1 ELSE 0 END)
FROM closed GROUP BY 1, 2, 3
"""
# What runs had, and how many have no known size, by resource of their partition and by price.
OCCUPIED = f"""
SELECT CASE WHEN cluster = 'far' THEN resource
            WHEN run.partition = 'idle-std' THEN 'cpu'
            WHEN run.partition = 'gpu-v100' THEN 'gpu' ELSE resource END AS place,
  CASE WHEN cluster = 'far' THEN 'far' ELSE 'alpha+darwin' END AS clusters,
  sum(coalesce(occupied, run.charged + written_off)),
  sum(CASE WHEN occupied IS NULL AND run.charged + written_off = 0 THEN 1 ELSE 0 END)
FROM run JOIN allocation ON allocation.id = run.allocation
WHERE run.state IN ('charged', 'released') AND ended_at >= {SINCE} AND ended_at < {UNTIL}
GROUP BY 1, 2
"""
COLUMNS = (
    *("runs", "failed", "charged", "elapsed", "core_seconds", "gpu_seconds"),
    *("waited", "cpu_seconds", "cpu_given", "wasted", "failed_early"),
)
GROUPS = {
    UsageBy.USER: "owner",
    UsageBy.PROJECT: "account",
    UsageBy.QOS: "coalesce(qos, '-')",
    UsageBy.JOB: "cluster || '/' || job_id",
    **dict.fromkeys((UsageBy.DAY, UsageBy.WEEK, UsageBy.MONTH), "day"),
}
GRANTED = """
SELECT resource, start_at, end_at, sum(CASE WHEN kind = 'deposit' THEN amount
                                            WHEN kind = 'withdraw' THEN -amount ELSE 0 END)
FROM allocation JOIN journal ON journal.allocation = allocation.id
GROUP BY allocation.id, resource, start_at, end_at
"""
# What an allocation had at a time, and the holds of runs that had not ended then.
AT_TIME = """
SELECT sum(CASE WHEN kind = 'deposit' THEN amount WHEN kind IN ('withdraw', 'charge') THEN -amount
                WHEN kind = 'refund' THEN amount ELSE 0 END),
  coalesce(sum(CASE WHEN kind = 'hold' AND NOT EXISTS (
    SELECT 1 FROM journal AS later
    WHERE later.run = journal.run AND later.kind = 'charge' AND later.at < :at
  ) THEN amount ELSE 0 END), 0)
FROM journal WHERE allocation = :allocation AND at < :at
"""


class Books(NamedTuple):
    """Random ledger in a database, and the address of a bank that serves it."""

    place: Place
    address: str


@pytest.fixture(scope="module", params=SEEDS)
def seed(request: pytest.FixtureRequest) -> int:
    number: int = request.param
    return number


@pytest.fixture(scope="module", params=IN_SQL)
def books(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, seed: int
) -> Iterator[Books]:
    for place in places(request.param, request, tmp_path_factory.mktemp("books")):
        store = place.open()
        for at, posted in sorted(ledger(Random(seed)), key=lambda event: event[0]):
            ask(store, posted, at=at)
        while seed % 2 and store.fold_usage():
            pass
        with serve_site(SITE_STORE=place.url, SITE_CLUSTERS="alpha") as bank:
            yield Books(place, bank.unix)


@pytest.fixture
def fairbank(
    books: Books, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Command]:
    monkeypatch.setenv("FAIRBANK_SERVER", books.address)
    monkeypatch.setenv("TZ", "Europe/Rome")
    time.tzset()
    yield runner(main.run, capsys)
    monkeypatch.undo()
    time.tzset()


def ledger(random: Random) -> Iterator[tuple[int, Request]]:
    """Yield requests with their times: grants, and runs of which some were held or refunded."""
    for number, account in enumerate(ACCOUNTS, 1):
        yield 0, project(account, 5_000 + number)
        for start, end, resource in TERMS:
            begin, over = (parse_instant(f"{day}T00:00Z") for day in (start, end))
            category = random.choice(("annual", "startup"))
            terms: dict[str, Any] = {
                "resource": resource,
                "start": begin,
                "end": over,
                "category": category,
            }
            yield number, allocation(number, random.randrange(100_000, 9_000_000), **terms)
    for number in range(1, 10):
        amount = SuMinutes(random.randrange(1, 5_000))
        yield random.randrange(SINCE, UNTIL), Withdraw(allocation=number, amount=amount)
    for number in range(1, 81):
        yield from life(random, number)


def life(random: Random, number: int) -> Iterator[tuple[int, Request]]:
    """Yield the requests of a run. It may have the number of another job on the same cluster."""
    end = random.randrange(SINCE - 3 * DAY, UNTIL)
    elapsed = random.choice((random.randrange(1, 121), random.randrange(121, 5 * DAY)))
    start, cpus = end - elapsed, random.randrange(1, 65)
    cluster = random.choice(("alpha", "darwin", "far"))
    resource = "cpu" if cluster == "far" else random.choice(("cpu", "cpu", "gpu"))
    gpus = random.choice((1, 2)) if resource == "gpu" else 0
    used = random.choice((None, random.randrange(cpus * elapsed + 1)))
    run = Run(cluster, random.randrange(1, 60), start - random.randrange(DAY))
    chain, owner = (random.randrange(1, 4),), random.randrange(61_001, 61_004)
    more: dict[str, Any] = {"run": run, "chain": chain, "resource": resource, "owner": owner}
    more |= {"partition": random.choice(PARTITIONS), "start": start}
    details: dict[str, Any] = {
        "cpus": cpus,
        "qos": random.choice((None, "high")),
        "cpu_seconds": used,
    }
    tres = f"cpu={cpus}" + (f",gres/gpu={gpus}" if gpus else "")
    amount = random.randrange(100_000)
    if random.random() < 0.5:
        before = JobDetails(cpus=cpus, tres=tres, qos=details["qos"])
        yield start, hold(number, amount + 50, until=end, job_details=before, **more)
    if random.random() < 0.1:
        return  # without an end the hold is open, and a run without a hold is not known
    amount = random.choice((amount, amount, 0))
    occupied = random.choice((None, amount, random.randrange(10**6)))
    about = JobDetails(tres=tres, exit_status=0, occupied=occupied, **details)
    outcome = random.choice(("COMPLETED", "COMPLETED", "FAILED", "TIMEOUT"))
    ended: dict[str, Any] = {"outcome": outcome, "elapsed_seconds": elapsed, "ended": end}
    yield end, charge(number, amount, job_details=about, **more, **ended)
    if amount and random.random() < 0.3:
        back = SuMinutes(random.randrange(1, amount + 1))
        yield min(end + DAY, NOW - 1), Refund(run=run, amount=back)


# --- usage ---


def name_of(by: UsageBy, group: object) -> str:
    """Return the group as `usage` names it: of a day since 1970 also its week or month."""
    if not by.is_time:
        return str(group)
    day = date.fromordinal(date(1970, 1, 1).toordinal() + int(str(group)))
    year, week, _ = day.isocalendar()
    names = {UsageBy.WEEK: f"{year}-W{week:02}", UsageBy.MONTH: f"{day:%Y-%m}"}
    return names.get(by, day.isoformat())


def sums_in_sql(place: Place, by: UsageBy) -> dict[tuple[str, ...], list[int]]:
    """Return the sums of COLUMNS by group, resource and clusters."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for group, resource, clusters, *sums in place.run(
        SUMS.replace("GROUPED", GROUPS.get(by, by.value))
    ):
        key = name_of(by, group), resource, clusters
        groups[key] = added([groups.get(key, NOTHING), [*map(int, sums)]])
    return groups


def added(rows: list[list[int]]) -> list[int]:
    return [sum(column) for column in zip(*rows, strict=True)]


def figures(row: dict[str, Any]) -> list[int]:
    """Return the sums of a row; `wasted` is null where nothing is known of processors."""
    assert row["wasted"] is not None or not row["cpu_given"]
    return [row[name] or 0 for name in COLUMNS]


def document(result: CommandResult) -> dict[str, Any]:
    assert result.code == 0, result.err
    value: dict[str, Any] = json.loads(result.out)
    return value


def check_units(rows: list[dict[str, Any]], totals: list[dict[str, Any]]) -> None:
    """Check that in each unit the rows add up to its total, and their shares to 100 percent."""
    for total in totals:
        unit = total["resource"], total["clusters"]
        own = [row for row in rows if (row["resource"], row["clusters"]) == unit]
        assert added([figures(row) for row in own]) == figures(total)
        assert sum(row["share_permille"] for row in own) == 1_000
    assert len({(row["resource"], row["clusters"]) for row in rows}) == len(totals) == 3


@pytest.mark.parametrize("by", [by for by in UsageBy if by is not UsageBy.ALLOCATION_USER])
def test_usage_of_each_grouping_equals_sums_in_sql(
    fairbank: Command, books: Books, by: UsageBy
) -> None:
    shown = document(fairbank("usage", *PERIOD, "--by", by.value, "--json"))
    check_units(shown["data"], shown["totals"])
    rows = {
        (str(row["group"]), row["resource"], row["clusters"]): figures(row) for row in shown["data"]
    }
    assert rows == sums_in_sql(books.place, by)


@pytest.mark.parametrize("by", [UsageBy.USER, UsageBy.JOB, UsageBy.DAY])
def test_others_are_what_the_limit_of_usage_leaves_out(
    fairbank: Command, books: Books, by: UsageBy
) -> None:
    """Of users and jobs the two largest of each unit are kept, of days the two latest."""
    shown = document(fairbank("usage", *PERIOD, "--by", by.value, "--limit", 2, "--json"))
    check_units(shown["data"], shown["totals"])
    expected = sums_in_sql(books.place, by)
    charged = COLUMNS.index("charged")
    for unit in {key[1:] for key in expected}:
        of_unit = [key for key in expected if key[1:] == unit]
        order = (lambda key: key[0]) if by.is_time else (lambda key: expected[key][charged])
        rows = [row for row in shown["data"] if (row["resource"], row["clusters"]) == unit]
        kept = [row for row in rows if row["group"] is not None]
        assert [row["name"] for row in rows[2:]] == [OTHERS] * (len(of_unit) > 2)
        largest = sorted(map(order, of_unit), reverse=True)[:2]
        assert sorted((order((str(row["group"]), *unit)) for row in kept), reverse=True) == largest


def test_cells_of_usage_are_the_nearest_hundredths(fairbank: Command) -> None:
    words = ("usage", *PERIOD, "--by", "job")
    rows = document(fairbank(*words, "--json"))["data"]
    cells = fairbank(*words, "-P", "-n", "-o", "SU,SHARE%,WASTED").out.splitlines()
    share: dict[str, Fraction] = {}
    for row, line in zip(rows, cells, strict=True):
        charged, percent, wasted = line.split("|")
        assert abs(Fraction(charged) - Fraction(row["charged"], 60)) <= Fraction(1, 200)
        assert abs(Fraction(wasted or 0) - Fraction(row["wasted"] or 0, 60)) <= Fraction(1, 200)
        unit = row["resource_name"]
        share[unit] = share.get(unit, Fraction(0)) + Fraction(percent.strip().rstrip("%"))
    assert set(share.values()) == {Fraction(100)}


# --- reports ---

CREDIT = {("cpu", ""), ("gpu", "alpha+darwin"), ("debug", "alpha+darwin")}
"""Rows of `report centre` that have the credit of their resource."""
NOTHING = [0] * len(COLUMNS)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return a list that gets each figure which is drawn."""
    figures_drawn: list[Any] = []
    render = canvas.render

    def observed(figure: Any, form: canvas.Format) -> bytes:
        figures_drawn.append(figure)
        return render(figure, form)

    monkeypatch.setattr(canvas, "render", observed)
    return figures_drawn


def test_report_centre_equals_sums_in_sql(fairbank: Command, books: Books) -> None:
    """200 CPUs give 200 SU an hour; GRANTED is the part of the terms in the period. Nothing was
    granted or used of the credit of QOS debug.
    """
    shown = document(fairbank("report", "centre", *PERIOD, "--json"))
    sums = {key[1:]: row for key, row in sums_in_sql(books.place, UsageBy.RESOURCE).items()}
    granted = {"cpu": 0, "gpu": 0, "debug": 0}
    had = {(place, clusters): numbers for place, clusters, *numbers in books.place.run(OCCUPIED)}
    for resource, start, end, deposited in books.place.run(GRANTED):
        overlap = max(0, min(end, UNTIL) - max(start, SINCE))
        granted[resource] += int(deposited) * overlap // (end - start)
    rows = {(row["resource"], row["clusters"]): row for row in shown["data"]}
    assert rows.keys() == {*sums, *CREDIT}
    jobs = [COLUMNS.index(name) for name in ("runs", "charged", "core_seconds", "gpu_seconds")]
    for unit, row in rows.items():
        size = None if unit[1] == "far" else {"cpu": 200, "gpu": 2}.get(unit[0])
        capacity = None if size is None or not unit[1] else size * (UNTIL - SINCE) // 60
        assert row["capacity"] == capacity
        assert row["granted"] == (granted[unit[0]] if unit in CREDIT else None)
        shown_jobs = [row[name] for name in ("runs", "used", "core_seconds", "gpu_seconds")]
        if unit[1]:
            assert shown_jobs == [sums.get(unit, NOTHING)[place] for place in jobs]
            uncharged = None if capacity is None else max(0, capacity - row["used"])
            assert row["uncharged"] == uncharged
            occupied, without_size = map(int, had.get(unit, (0, 0)))
            assert row["without_size"] == without_size
            known = without_size == 0 and unit[0] != "debug"
            assert row["occupied"] == (occupied if known else None)
            idle = capacity - occupied if known and capacity is not None else None
            assert row["idle"] == idle
        else:  # use at two prices is not added
            assert shown_jobs == [0, None, 0, 0]
            assert [row[name] for name in ("occupied", "idle", "uncharged")] == [None] * 3
    totals = dict(zip(COLUMNS, added([*sums.values()]), strict=True))
    for name in ("runs", "core_seconds", "gpu_seconds"):
        assert shown["totals"][name] == totals[name]
    assert (shown["totals"]["projects"], shown["totals"]["allocations"]) == (3, 9)


@pytest.mark.parametrize("by", [UsageBy.JOB, UsageBy.WEEK])
def test_drawn_usage_equals_sums_in_sql(
    fairbank: Command, books: Books, drawn: list[Any], tmp_path: Path, by: UsageBy
) -> None:
    """Of jobs the 12 largest of each unit and the others have a bar, and each week its step."""
    words = ("report", "usage", tmp_path / "figures", *PERIOD, "--by", by.value, "--json")
    shown = document(fairbank(*words))
    check_units(shown["data"], shown["totals"])
    if by.is_time:
        (figure,) = drawn
        heights = [sum(y for _, y in one.points[::2]) for p in figure.panels for one in p.series]
    else:
        heights = [sum(group.values[0] for group in figure.groups) for figure in drawn]
    charged = COLUMNS.index("charged")
    of_units: dict[tuple[str, ...], int] = {}
    for key, sums in sums_in_sql(books.place, by).items():
        of_units[key[1:]] = of_units.get(key[1:], 0) + sums[charged]
    assert sorted(heights) == pytest.approx([used / 60 for used in sorted(of_units.values())])


def test_drawn_balance_equals_sums_in_sql_at_each_time(
    fairbank: Command, books: Books, drawn: list[Any], tmp_path: Path
) -> None:
    words = ("report", "balance", tmp_path, "-A", "bio", "--json")
    shown = document(fairbank(*words))
    assert len(shown["data"]) == len(drawn) > 0
    for row, figure in zip(shown["data"], drawn, strict=True):
        number = int(row["file"].rpartition("-")[2].removesuffix(".svg"))
        ((start,),) = books.place.run(f"SELECT start_at FROM allocation WHERE id = {number}")
        (panel,) = figure.panels
        for (day, remaining), (_, low, high) in zip(
            panel.series[0].points, panel.band.points, strict=True
        ):
            at = start + round(day * DAY)
            ((balance, held),) = books.place.run(AT_TIME, allocation=number, at=at)
            assert remaining == low == pytest.approx(int(balance - held) / 60)
            assert high == pytest.approx(int(balance) / 60)
