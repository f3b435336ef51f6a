"""`fairbank report`: the whole centre, credit and usage, also as pictures."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest

from fairbank.bank.allocation import Allocation, AllocationTerms
from fairbank.bank.centre import ClusterSize, Occupied, centre_use
from fairbank.bank.project import Project
from fairbank.bank.query import Balance, Usage
from fairbank.bank.run import UserSums
from fairbank.cli.commands.report.balance import projected_term
from fairbank.core.time import DAY, Instant, parse_instant
from fairbank.core.units import SuMinutes
from fairbank.report import centre
from fairbank.report.columns import DisplayFormat
from fairbank.report.plots import canvas
from fairbank.report.plots.bank import Term, burn_down, calendar_names, usage_by_group
from fairbank.report.plots.figures import Caption, GroupFigure
from fairbank.rest.schemas.alloc import balance_row
from fairbank.rest.schemas.usage import centre_figures
from tests.cli.conftest import Run
from tests.cli.site import AYLA, GPU

JULY = ("-S", "2026-07-01", "-E", "2026-08-01", "--utc")
SEPTEMBER = ("-S", "2026-09-01", "-E", "2026-10-01", "--utc")


def test_capacity_granted_used_and_idle_of_july(fairbank: Run) -> None:
    """The site has 100 cores and 1 GPU; July has 744 hours: 74,400 and 744 SU.

    Allocation 1: 100,000 SU for 8,760 h, of which 740 lie in July (from 4:00): 8,447.48 SU.
    Allocation 2: 5,000 x 740 / 8,760 = 422.36; allocation 3: 12,000 x 744 / 8,760 = 1,019.16; in
    whole minutes 25,342 + 61,150 = 86,492, or 1,441.53 SU: 193.8 % of the GPU. One job used 9,000
    SU on 750 cores for 10 h. Where no one knows what was down, the rest is IDLE.
    """
    result = fairbank(
        "report", "centre", *JULY, "-o", "RESOURCE,CAPACITY,GRANTED,USED,USED%,OCCUPIED,IDLE,DOWN"
    )
    lines = [line.split() for line in result.out.splitlines()[-3:]]
    assert lines == [
        ["cpu", "74400", "8447.48", "9000", "12.1%", "9000", "65400", "-"],
        ["debug", "0.00", "0", "-", "-", "-", "-"],  # of a QOS, on the nodes of others
        ["gpu", "744", "1441.53", "0", "0.0%", "0", "744", "-"],
    ]
    notes = " ".join(result.err.split())
    assert "! gpu: 1,441.53 SU are granted for this time, 193.8% of the 744 SU that exist." in notes
    assert "! cpu" not in notes
    assert "No capacity of its own: debug. Jobs of a QOS" in notes
    assert "Capacity not known" not in notes
    assert "cpu, gpu: DOWN is not known; IDLE includes it. Ask on a host with scontrol." in notes
    in_thousands = " ".join(fairbank("report", "centre", *JULY, "--units", "k").err.split())
    assert "! gpu: 1.44 thousand SU are granted" in in_thousands
    assert "193.8% of the 0.74 thousand SU that exist." in in_thousands
    # 100 processors and 1 GPU for 744 hours.
    assert (
        "2 projects, 3 allocations, 1 job, 7500 CPU-hours (utilisation 10.1%),"
        " 0 GPU-hours (utilisation 0.0%)." in notes
    )


def test_figures_of_the_centre_as_json_are_minutes(fairbank: Run) -> None:
    """Two GPU jobs of 24 h: 48 GPU-hours, and 8 processors each: 384 CPU-hours. They were charged
    4,610 SU, more than the 720 that exist.
    """
    answer = json.loads(fairbank("report", "centre", *SEPTEMBER, "--json").out)
    cpu, debug, gpu = answer["data"]
    assert (gpu["used"], gpu["runs"], gpu["core_seconds"], gpu["gpu_seconds"]) == (
        4_610 * 60,
        2,
        384 * 3_600,
        48 * 3_600,
    )
    assert cpu["capacity"] == cpu["used"] + cpu["uncharged"] == 100 * 720 * 60
    assert cpu["capacity"] == cpu["occupied"] + cpu["idle"]
    assert (gpu["occupied"], gpu["idle"], gpu["uncharged"]) == (4_610 * 60, -3_890 * 60, 0)
    assert any("gpu: jobs had 3,890 SU more" in warning for warning in answer["warnings"])
    assert (debug["occupied"], debug["idle"]) == (None, None)
    assert (cpu["used_permille"], gpu["used_permille"]) == (125, 6403)
    totals = answer["totals"]
    assert (totals["projects"], totals["allocations"], totals["runs"]) == (2, 3, 3)
    assert totals["gpu_seconds"] == gpu["gpu_seconds"]
    assert totals["core_seconds"] == cpu["core_seconds"] + gpu["core_seconds"]
    # 48 of the 720 hours of the GPU, and 7,884 of the 72,000 of the processors.
    assert (totals["cpus"], totals["cpu_used_permille"]) == (100, 110)
    assert (totals["gpus"], totals["gpu_used_permille"]) == (1, 67)


def test_allocation_that_was_ended_early_was_granted_what_it_could_use(changing: Run) -> None:
    """All terms lie in the period. Of allocation 2, 4,610 of 5,000 SU were charged and 128 are
    held; allocation 3 has 12,000 SU: with 4,738 SU they are 16,738. The 7 SU of a term that passed
    count in full, used or not, and the 90 SU of a cancelled one not at all.
    """

    def granted() -> dict[str, int]:
        words = ("-S", "2025-01-01", "-E", "2028-01-01", "--json")
        rows = json.loads(changing("report", "centre", *words).out)["data"]
        return {row["resource"]: row["granted"] // 60 for row in rows if row["granted"]}

    def create(resource: str, start: str, end: str, amount: int) -> int:
        terms = ("-r", resource, "--start", start, "--end", end, "--amount", amount)
        made = changing("alloc", "create", "-A", "bio_fold", *terms, "--reason", "x", "--json")
        return int(json.loads(made.out)["data"]["id"])

    create("disk", "2026-01-01", "2026-02-01", 7)
    planned = create("tape", "2027-01-01", "2027-02-01", 90)
    assert granted() == {"cpu": 100_000, "gpu": 17_000, "disk": 7, "tape": 90}
    for number in (GPU, planned):
        assert changing("alloc", "end", number, "--reason", "x", "--yes").code == 0
    assert granted() == {"cpu": 100_000, "gpu": 16_738, "disk": 7}


HOURS = 360
"""Duration of the period in tests of a centre without a server."""
USED = Usage("cpu", "cpu", "alpha", 1, 0, 0, 0, core_seconds=720 * 3_600, gpu_seconds=36 * 3_600)


def report_of(
    units: Mapping[tuple[str, str], int | None],
    *,
    granted: int = 0,
    days: tuple[float, float] = (0, HOURS / 24),
    used: Sequence[Usage] = (),
    occupied: Mapping[tuple[str, str], Occupied] | None = None,
    sizes: Sequence[ClusterSize] = (ClusterSize("alpha", None, None),),
) -> dict[str, Any]:
    """Return the answer of `/centre`.

    Args:
        units: what each resource and its clusters can charge in the period, in SU-minutes.
        granted: credit of cpu in SU-minutes.
        days: days from the start of the period in which the term of this credit begins and ends.
        used: the usage.
        occupied: what runs had of the resources.
        sizes: processors and GPUs of the clusters.
    """
    start, end = (Instant(int(day * DAY)) for day in (days[0] + 9, days[1] + 9))
    since, until = Instant(9 * DAY), Instant(9 * DAY + HOURS * 3_600)
    terms = AllocationTerms(project=1, resource="cpu", category="research", start=start, end=end)
    grant = Allocation(id=1, terms=terms, deposited=SuMinutes(granted))
    per_hour = {
        unit: None if capacity is None else Fraction(capacity, HOURS * 60)
        for unit, capacity in units.items()
    }
    members = {clusters: clusters.split("+") for _, clusters in units}
    use = centre_use(per_hour, members, sizes, [grant], used, occupied or {}, since, until)
    answer: dict[str, Any] = msgspec.to_builtins(centre_figures(use, since, until))
    return answer


def two_prices(alpha: int | None, beta: int | None, granted: int) -> dict[str, Any]:
    """Return the answer for clusters with these capacities, and credit for both."""
    return report_of({("cpu", "alpha"): alpha, ("cpu", "beta"): beta}, granted=granted)


def test_utilisation_is_shown_beside_the_hours() -> None:
    """8 CPUs for 360 hours are 2,880 CPU-hours, of which 720 were used; a GPU was used for 36."""
    answer = report_of({}, used=[USED], sizes=[ClusterSize("alpha", 8, 1)])
    first, *_ = centre.notes([], answer, DisplayFormat())
    assert "720 CPU-hours (utilisation 25.0%), 36 GPU-hours (utilisation 10.0%)." in first


def test_unknown_utilisation_names_the_settings_that_it_needs() -> None:
    first, *_, last = centre.notes([], report_of({}, used=[USED]), DisplayFormat())
    assert "720 CPU-hours, 36 GPU-hours." in first
    assert last.startswith("Utilisation not known: set cpus and gpus of each [clusters.NAME]")


def test_credit_for_clusters_with_different_prices_is_compared_with_what_both_can_charge() -> None:
    """An SU pays on either cluster: 9,000 SU are granted, and both can charge 2,000 and 4,000."""
    answer = two_prices(2_000 * 60, 4_000 * 60, 9_000 * 60)
    rows = centre.centre_rows(answer["resources"], {})
    assert [(row["resource_name"], row["capacity"]) for row in rows] == [
        ("cpu", 360_000),
        ("cpu@alpha", 120_000),
        ("cpu@beta", 240_000),
    ]
    shown = ("granted", "occupied", "idle", "uncharged", "used_permille")
    assert [[row[name] for name in shown] for row in rows] == [
        [540_000, None, None, None, None],  # use of different prices is not added
        [None, 0, 120_000, 120_000, 0],
        [None, 0, 240_000, 240_000, 0],
    ]
    form = DisplayFormat()
    assert centre.warnings(rows, form) == [
        "! cpu: 9,000 SU are granted for this time, 150.0% of the 6,000 SU that exist."
    ]
    notes = " ".join(centre.notes(rows, answer, form))
    assert "cpu: an SU pays on each of its clusters, at their own prices, so CAPACITY is" in notes
    assert "Capacity not known" not in notes
    cells = {column.head: column.cell(rows[0], form) for column in centre.COLUMNS}
    assert [cells[head] for head in ("USED", "USED%", "IDLE", "JOBS")] == ["", "-", "-", ""]
    drawn = centre.figure(rows, Caption("Use", "", "", ""))
    assert drawn.names == ["granted", "used", "occupied", "idle"]
    assert [(group.panel, group.name, group.values, group.line) for group in drawn.groups] == [
        ("cpu", "cpu", [9_000, None, None, None], 6_000),
        ("cpu", "cpu@alpha", [None, 0, 0, 2_000], 2_000),
        ("cpu", "cpu@beta", [None, 0, 0, 4_000], 4_000),
    ]
    assert [group.remark for group in drawn.groups] == ["granted 150.0%", "used 0.0%", "used 0.0%"]


def test_figure_shows_resources_without_known_capacity() -> None:
    """Of two clusters with different prices one has no capacity, so both together have none."""
    answer = two_prices(2_000 * 60, None, 9_000 * 60)
    rows = centre.centre_rows(answer["resources"], {})
    drawn = centre.figure(rows, Caption("Use", "", "", ""))
    assert [(group.name, group.values, group.line) for group in drawn.groups] == [
        ("cpu", [9_000, None, None, None], None),
        ("cpu@alpha", [None, 0, 0, 2_000], 2_000),
        ("cpu@beta", [None, 0, 0, None], None),
    ]
    unknown = "capacity\nnot known"
    assert [group.remark for group in drawn.groups] == [unknown, "used 0.0%", unknown]
    assert b">capacity</text>" in canvas.render(drawn, "svg")


def test_clusters_with_the_same_prices_need_their_capacities_in_the_settings() -> None:
    """A host has the nodes of one of them, so asking there would not help."""
    for capacity, expected in (
        (None, "Capacity not known: cpu. Set [clusters.NAME.capacity] of each of its clusters."),
        (6_000, "cpu: DOWN of its clusters together is not known; IDLE includes it."),
    ):
        answer = report_of({("cpu", "alpha+beta"): capacity})
        rows = centre.centre_rows(answer["resources"], {})
        shown = centre.notes(rows, answer, DisplayFormat())
        assert [line for line in shown if line.startswith(("cpu:", "Capacity"))] == [expected]


def test_new_allocations_that_grant_more_than_exists_are_in_a_warning() -> None:
    """15 days of 1 SU an hour are 360 SU. Of 1,000 SU for 30 days, 33 SU are of the day that
    passed, and 15 days of them are 500.
    """
    for granted, expected in (
        (
            1_000 * 60,
            [
                "! cpu: the allocations of its end grant 500 SU for a time of this length, 138.9%"
                " of the 360 SU that exist."
            ],
        ),
        (720 * 60, []),
    ):
        answer = report_of({("cpu", "alpha"): 360 * 60}, granted=granted, days=(14, 44))
        rows = centre.centre_rows(answer["resources"], {})
        assert rows[0]["granted"] == granted // 30
        assert centre.warnings(rows, DisplayFormat()) == expected


def test_sum_of_unknown_capacities_is_not_known() -> None:
    answer = two_prices(60, None, 181)
    rows = centre.centre_rows(answer["resources"], {})
    assert [row["capacity"] for row in rows] == [None, 60, None]
    assert centre.warnings(rows, DisplayFormat()) == []
    notes = centre.notes(rows, answer, DisplayFormat())
    assert any(note.startswith("Capacity not known: cpu@beta.") for note in notes)
    assert not any(note.startswith("cpu: an SU pays") for note in notes)


ALPHA = "cpu", "alpha"


def test_occupied_idle_and_down_add_up_to_the_capacity() -> None:
    """2,000 SU exist, 500 of them down. Jobs had 1,100, of which 100 were charged: 400 are idle."""
    charged = Usage("cpu", "cpu", "alpha", 2, 0, 100 * 60, 0)
    had = {ALPHA: Occupied(1_100 * 60)}
    answer = report_of({ALPHA: 2_000 * 60}, used=[charged], occupied=had)
    (row,) = centre.centre_rows(answer["resources"], {ALPHA: 500 * 60})
    shown = ("used", "occupied", "idle", "down", "uncharged")
    assert [row[name] // 60 for name in shown] == [100, 1_100, 400, 500, 1_400]
    assert not any("IDLE includes" in line for line in centre.notes([row], answer, DisplayFormat()))
    drawn = centre.figure([row], Caption("Use", "", "", ""))
    assert drawn.names == ["granted", "used", "occupied", "idle", "down"]
    assert drawn.groups[0].values == [0, 100, 1_100, 400, 500]


def test_idle_is_not_known_if_a_free_job_has_no_size() -> None:
    answer = report_of({ALPHA: 2_000 * 60}, occupied={ALPHA: Occupied(60, without_size=2)})
    (row,) = centre.centre_rows(answer["resources"], {ALPHA: 0})
    assert (row["occupied"], row["idle"], row["without_size"]) == (None, None, 2)
    notes = centre.notes([row], answer, DisplayFormat())
    assert any(line.startswith("cpu: IDLE is not known: 2 jobs ran free") for line in notes)
    cells = {column.head: column.cell(row, DisplayFormat()) for column in centre.COLUMNS}
    assert [cells[head] for head in ("OCCUPIED", "IDLE", "DOWN")] == ["-", "-", "0"]


def test_negative_idle_has_its_reason() -> None:
    """Jobs had 1,700 of 2,000 SU, of which 500 are down: 200 too many, and no bar below 0."""
    answer = report_of({ALPHA: 2_000 * 60}, occupied={ALPHA: Occupied(1_700 * 60)})
    (row,) = centre.centre_rows(answer["resources"], {ALPHA: 500 * 60})
    assert row["idle"] == -200 * 60
    (warning,) = centre.warnings([row], DisplayFormat())
    assert warning.startswith("! cpu: jobs had 200 SU more than there was, so IDLE is negative.")
    drawn = centre.figure([row], Caption("Use", "", "", ""))
    assert drawn.groups[0].values == [0, 0, 1_700, 0, 500]


def test_jobs_on_credit_of_a_qos_occupy_the_nodes_of_their_partition() -> None:
    """QOS debug paid 10 SU of its own resource for them, and they had 10 SU of cpu."""
    members, sizes = {"alpha": ["alpha"]}, [ClusterSize("alpha", None, None)]
    units = {ALPHA: Fraction(100), ("debug", "alpha"): None}
    paid = Usage("debug", "debug", "alpha", 1, 0, 10 * 60, 0)
    since, until = Instant(0), Instant(3_600)
    had = {ALPHA: Occupied(10 * 60)}
    use = centre_use(units, members, sizes, [], [paid], had, since, until, of_qos={"debug"})
    rows = centre.centre_rows(
        msgspec.to_builtins(centre_figures(use, since, until))["resources"], {}
    )
    shown = ("resource", "used", "occupied", "idle")
    assert [[row[name] for name in shown] for row in rows] == [
        ["cpu", 0, 10 * 60, 90 * 60],
        ["debug", 10 * 60, None, None],
    ]


def test_only_staff_see_the_whole_centre(fairbank: Run) -> None:
    result = fairbank("report", "centre", "--as", AYLA)
    assert (result.code, result.out) == (4, "")
    assert "the use of the whole centre is for staff" in result.err


def test_empty_period_of_the_centre_is_refused(fairbank: Run) -> None:
    assert fairbank("report", "centre", "-S", "2026-07-01", "-E", "2026-07-01").code == 2
    assert fairbank("report", "centre", "-S", "never").code == 2


@pytest.mark.parametrize(
    ("words", "files", "period"),
    [
        (("centre", *JULY), {"centre.svg"}, "2026-07-01 00:00:00 .. 2026-08-01 00:00:00"),
        (
            ("usage", "-S", "2026-07-01", "-E", "2026-10-01"),
            {"usage-cpu.svg", "usage-gpu.svg"},
            "2026-07-01 00:00:00 .. 2026-10-01 00:00:00",
        ),
        (
            ("usage", "-S", "2026-07-01", "--by", "week"),
            {"usage.svg"},
            "2026-07-01 00:00:00 .. 2026-11-21 07:30:13",
        ),
        (
            ("balance", "-A", "chem_qmc"),
            {"balance-1.svg", "balance-2.svg"},
            "2026-07-01 .. 2027-06-30",
        ),
    ],
)
def test_reports_are_drawn_with_what_they_show_and_of_which_time(
    fairbank: Run, tmp_path: Path, words: tuple[str, ...], files: set[str], period: str
) -> None:
    verb, *options = words
    folder = tmp_path / "figures"
    result = fairbank("report", verb, folder, *options)
    assert result.code == 0, result.err
    assert "   bank fairbank" in result.out
    assert {file.name for file in folder.iterdir()} == files
    for file in folder.iterdir():
        picture = file.read_text()
        assert f"Command: fairbank report {verb}" in picture
        assert f">{period}</text>" in picture
        assert ">down</text>" not in picture  # not known without Slurm
        for word in {
            "centre": ("granted", "occupied", "idle", "cpu", "gpu"),
            "usage": ("SU",),
            "balance": ("held by running jobs", "even use", "remaining"),
        }[verb]:
            assert word in picture


def test_picture_over_time_covers_its_whole_period(fairbank: Run, tmp_path: Path) -> None:
    """The only jobs of the first half of 2026 and a month more are of July."""
    words = ("-S", "2026-01-01", "-E", "2026-08-01", "--by", "month")
    assert fairbank("report", "usage", tmp_path, *words).code == 0
    picture = (tmp_path / "usage.svg").read_text()
    months = re.findall(r">(2026-\d\d)</text>", picture)
    assert (months[0], months[-1]) == ("2026-01", "2026-07")


@pytest.mark.parametrize(
    ("by", "names"),
    [
        ("day", ["2026-12-31", "2027-01-01", "2027-01-02"]),
        ("week", ["2026-W53"]),
        ("month", ["2026-12", "2027-01"]),
    ],
)
def test_calendar_of_a_period_has_each_part_once(by: str, names: list[str]) -> None:
    assert calendar_names("2026-12-31", "2027-01-02", by) == names


def test_bars_of_what_is_not_known_are_left_out() -> None:
    row = {"resource_name": "cpu", "name": "chem", "charged": 60, "share_permille": 1000}
    caption = Caption("Usage", "", "", "")
    for wasted, names in ((None, ["charged"]), (0, ["charged", "of that idle"])):
        ((unit, drawn),) = usage_by_group([{**row, "wasted": wasted}], "project", caption)
        assert isinstance(drawn, GroupFigure)
        assert (unit, drawn.names) == ("cpu", names)


def test_period_that_has_not_ended_is_named(fairbank: Run) -> None:
    to_come = "The period ends in the future: CAPACITY, IDLE, DOWN and utilisation are of"
    for words in (JULY, ()):
        assert to_come not in " ".join(fairbank("report", "centre", *words).err.split())
    longer = fairbank("report", "centre", "-S", "2026-07-01", "-E", "2027-07-01").err
    assert to_come in " ".join(longer.split())


def test_default_period_of_the_centre_is_30_days_to_the_second(fairbank: Run) -> None:
    """The 100 cores of the site for 720 hours."""
    (cpu, *_) = json.loads(fairbank("report", "centre", "--json").out)["data"]
    assert cpu["capacity"] == 100 * 720 * 60


def test_drawn_usage_keeps_the_notes_of_its_table(fairbank: Run, tmp_path: Path) -> None:
    """The site used two units from July on, and measured the processors of ayla's jobs."""
    words = ("-S", "2026-07-01", "-E", "2026-10-01")
    table, drawn = fairbank("usage", *words).err, fairbank("report", "usage", tmp_path, *words).err
    assert "WASTED = " in table
    assert "cannot be added" in " ".join(table.split())
    assert drawn.startswith(table)
    assert "usage-cpu.svg:" in "".join(drawn.split())


def test_limit_of_drawn_usage_is_as_its_help_says(
    fairbank: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    help_text = " ".join(fairbank("report", "usage", "--help").out.split())
    assert "of times the latest (default: 12, of times all)" in help_text
    monkeypatch.setattr("fairbank.cli.commands.report.usage.GROUPS_MAX", 2)

    def drawn(*words: object) -> int:
        shown = fairbank("report", "usage", tmp_path, "-S", "2026-01-01", "-r", "cpu", *words)
        return len(shown.out.splitlines())

    all_jobs = fairbank("usage", "-S", "2026-01-01", "-r", "cpu", "--by", "job")
    assert drawn("--by", "job", "--limit", "all") == len(all_jobs.out.splitlines())
    assert drawn("--by", "job") == drawn("--by", "job", "--limit", 2)
    assert drawn("--by", "month", "--limit", "all") == drawn("--by", "month")


def test_days_of_a_burn_down_are_those_of_the_local_zone() -> None:
    """A term from 1 July, 0:00 in Rome, begins on 30 June in UTC."""
    form = DisplayFormat(zone=ZoneInfo("Europe/Rome"))
    start = parse_instant("2026-06-30T22:00:00Z")
    term = Term(start, start + 60 * DAY, 100, None)
    drawn = burn_down(term, [], form.day, Caption("Credit", "", "", "", form.days(*term[:2])))
    days = [name for _, name in drawn.across.ticks]
    assert (days[0], days[-1]) == ("2026-07-01", "2026-08-30")
    assert drawn.caption.period == "2026-07-01 .. 2026-08-29"


def test_projection_of_a_burn_down_keeps_the_credit_limit() -> None:
    """After 50 of 100 days 100 of 1,000 SU are used, and 5,000 more may be: 5,900 SU are available.
    100 SU more will be used, or the 300 SU of a hold: 5,800 or 5,600 SU are available at the end.
    """
    start = parse_instant("2026-01-01T00:00:00Z")
    end = start + 100 * DAY
    for charged, held, ends_with in (
        (6_000, 0, (end, 348_000)),
        (6_000, 18_000, (end, 336_000)),
        (240_000, 0, (start + 75 * DAY, 0)),  # 120,000 are left: 25 days
    ):
        allocation = Allocation(
            id=1,
            terms=AllocationTerms(
                project=1,
                resource="cpu",
                category="research",
                start=start,
                end=Instant(end),
                credit_limit=SuMinutes(300_000),
            ),
            deposited=SuMinutes(60_000),
            charged=SuMinutes(charged),
            held=SuMinutes(held),
        )
        project = Project(id=1, gname="chem", gid=7_001, account="chem", parent=None)
        balance = Balance(allocation, UserSums(), None)
        row = balance_row(balance, project, Instant(start + 50 * DAY), {})
        assert projected_term(msgspec.to_builtins(row)) == Term(start, end, 60_000, ends_with)


def test_figures_of_nothing_are_errors(fairbank: Run, tmp_path: Path) -> None:
    folder = tmp_path / "figures"
    for words in (("-A", "nosuch"), ("-r", "nosuch"), ("-A", "chem_qmc,nosuch")):
        assert fairbank("report", "balance", folder, *words).code == 3
        assert fairbank("report", "usage", folder, *words).code == 3
    assert not folder.exists()


def test_report_of_usage_without_a_directory_is_its_table(fairbank: Run) -> None:
    words = ("-S", "2026-07-01", "-E", "2026-10-01")
    assert fairbank("report", "usage", *words) == fairbank("usage", *words, "--limit", "12")
    assert fairbank("report", "balance").code == 2  # it only draws


def test_burn_down_needs_an_allocation_that_has_begun(changing: Run, tmp_path: Path) -> None:
    """The error names no option: which of them leaves planned allocations only is not known."""
    term = ("--start", "2027-01-01", "--end", "2028-01-01", "--amount", 5, "--reason", "x")
    assert changing("alloc", "create", "-A", "bio_fold", "-r", "disk2", *term).code == 0
    result = changing("report", "balance", tmp_path / "figures", "-r", "disk2")
    assert result.code == 3
    assert "no allocation that you may see has begun" in result.err
    assert "--account" not in result.err
