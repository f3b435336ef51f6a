"""Recorded output of sshare and sprio of Slurm 22.05. Damaged lines are reported by line and field,
and no value is guessed.
"""

from __future__ import annotations

import math

import pytest

from fairbank.core.slurm_numbers import NICE_MAX, ON_PARENT
from fairbank.slurm.parsers import job_lines, sacctmgr, sprio, sshare
from fairbank.slurm.parsers.machine import read_partitions
from tests.support.fairshare_recordings import printed

ROOT = "root|lab||||0.000000|1000||1.000000||||cpu=0|1|cpu=0"


def account(name: str, depth: int, number: int = 2) -> str:
    figures = "40|0.400000|600|0.600000|0.600000||0.666667||cpu=10"
    return f"{' ' * depth}{name}|lab|||{figures}|{number}|cpu=0"


def user(name: str, account_name: str, depth: int, number: int = 3) -> str:
    figures = "parent|0.400000|0|0.000000|0.000000|0.600000|||cpu=0"
    return f"{' ' * (depth + 1)}{account_name}|lab|{name}||{figures}|{number}|cpu=0"


def read(*lines: str) -> tuple[list[tuple[str, str, str]], list[tuple[int, str]]]:
    """Return the parsed rows, each with its parent, and the unreadable lines and fields."""
    parsed = sshare.read_shares("".join(f"{line}\n" for line in lines))
    return [(row.parent, row.account, row.user) for row in parsed.rows], [
        (lost.line, lost.field) for lost in parsed.unreadable
    ]


def test_fair_share_of_2205() -> None:
    parsed = sshare.read_shares(printed("fair-tree", "sshare-everything"))
    assert parsed.unreadable == ()
    assert len(parsed.rows) == 21
    by_name = {(row.account, row.user, row.partition): row for row in parsed.rows}
    root = by_name["root", "", ""]
    assert (root.shares, root.norm_usage, root.effective, root.factor, root.level, root.usage) == (
        None,
        None,
        1.0,
        None,
        None,
        71994077964,
    )
    quantum = by_name["quantum_and_statistical_optics", "", ""]
    assert (quantum.parent, quantum.shares, quantum.level, quantum.cluster) == (
        "lasers",
        7,
        1.177779,
        "lab",
    )
    assert by_name["optics", "", ""].parent == "physics"
    assert by_name["optics", "", ""].shares == ON_PARENT
    alice = by_name["physics", "alice", "cpu"]
    assert (
        alice.shares,
        alice.usage,
        alice.effective,
        alice.factor,
        alice.level,
        alice.number,
    ) == (3, 44, 0.459182, 0.5, 0.171931, 17)
    assert by_name["physics", "alice", ""].level == math.inf
    assert by_name["wg_bio", "", ""].limits == "cpu=100000,mem=2000000000,gres/gpu=600"
    assert by_name["wg_bio", "", ""].used.startswith("cpu=361,mem=361051,")
    assert by_name["wg_bio", "", ""].running.endswith("gres/gpu=470")


def test_accounts_have_a_factor_under_the_classic_rule() -> None:
    rows = {
        row.account: row
        for row in sshare.read_shares(printed("classic", "sshare-everything")).rows
        if not row.user
    }
    assert (rows["root"].factor, rows["root"].norm_shares, rows["wg_bio"].factor) == (
        0.5,
        1.0,
        0.999999,
    )


def test_factors_of_2205() -> None:
    parsed = sprio.read_factors(printed("fair-tree", "sprio-everything"))
    assert parsed.unreadable == ()
    by_job = {(line.row.job, line.row.partition_name): line.row for line in parsed.rows}
    (line,) = (line for line in parsed.rows if line.row == by_job[12, "gpu"])
    row = line.row
    assert (row.user, int(row.priority), row.site, row.nice, row.cluster, row.direct) == (
        "carol",
        29726,
        0,
        0,
        None,
        None,
    )
    assert (row.age, row.association, row.fair_share) == (0, 500, 25000)
    assert (row.job_size, row.partition, row.qos) == (102, 100, 1000)
    assert (line.normal["f"], line.normal["j"]) == (0.25, 0.1016447)
    assert row.tres == {"cpu": 21.0, "mem": 4.0, "gres/gpu": 3000.0}
    assert line.tres_normal == {"cpu": 0.02, "mem": 0.0, "gres/gpu": 1.0}
    assert {partition for job, partition in by_job if job == 11} == {"cpu", "gpu"}
    assert (by_job[15, "cpu"].site, by_job[18, "cpu"].nice, by_job[17, "cpu"].priority) == (
        -5000,
        -123456,
        1,
    )
    with_priority = by_job[16, "cpu"]
    assert (
        with_priority.direct,
        with_priority.priority,
        with_priority.total,
        with_priority.tres,
    ) == (123456, 123456, 123456.0, {})
    assert [line.row.job for line in parsed.rows if line.row.direct is not None] == [16]


@pytest.mark.parametrize(
    ("priority", "fraction"),
    [
        (4_000_000_000, "0.93132257483278"),
        (4_000_000_000, "0.93132257483300"),
        (1, "0.00000000023283"),
        (8_589_934_590, "2.00000000000000"),  # sprio adds the factors up, slurmctld cuts the sum
    ],
)
def test_sum_equals_the_printed_priority(priority: int, fraction: str) -> None:
    cells = printed("fair-tree", "sprio-everything").splitlines()[0].split("|")
    cells[4:6] = [str(priority), fraction]
    (line,) = sprio.read_factors("|".join(cells)).rows
    assert int(line.row.priority) == priority


def test_nested_accounts_are_read() -> None:
    lines = [
        ROOT,
        account("chem", 1),
        user("dave", "chem", 1),
        account("qmc", 2),
        user("dave", "qmc", 2),
        account("bio", 1),
    ]
    assert read(*lines) == (
        [
            ("", "root", ""),
            ("root", "chem", ""),
            ("", "chem", "dave"),
            ("chem", "qmc", ""),
            ("", "qmc", "dave"),
            ("root", "bio", ""),
        ],
        [],
    )


@pytest.mark.parametrize(
    ("damage", "field"),
    [
        (("40", "many"), "RawShares"),
        (("40", f"{ON_PARENT}"), "RawShares"),
        (("0.400000", "nan"), "NormShares"),
        (("|600|", "|-600|"), "RawUsage"),
        (("|600|", "||"), "RawUsage"),
        (("0.666667", "0,666667"), "LevelFS"),
        (("chem", "a,b"), "Account"),
        (("|2|", "|x|"), "ID"),
        (("|2|cpu=0", ""), "GrpTRESRaw"),
    ],
)
def test_children_of_a_damaged_account_are_left_out(damage: tuple[str, str], field: str) -> None:
    bad = account("chem", 1).replace(*damage)
    rows, lost = read(
        ROOT,
        account("bio", 1),
        user("eve", "bio", 1),
        bad,
        user("dave", "chem", 1),
        account("qmc", 2),
        user("dave", "qmc", 2),
    )
    assert rows == [("", "root", ""), ("root", "bio", ""), ("", "bio", "eve")]
    assert lost[0] == (4, field)
    assert [line for line, _ in lost] == [4, 5, 6, 7]


def test_user_below_a_foreign_account_is_reported() -> None:
    rows, lost = read(ROOT, account("chem", 1), user("dave", "bio", 1))
    assert (len(rows), lost) == (2, [(3, "Account")])


@pytest.mark.parametrize(
    ("damage", "field"),
    [
        ((0, "12x"), "JOBID"),
        ((1, "a,b"), "PARTITION"),
        ((3, "a|b"), "t"),
        ((4, "-1"), "PRIORITY"),
        ((4, "9" * 17), "PRIORITY"),
        ((5, "nan"), "PRIORITY"),
        ((6, "1.5"), "SITE"),
        ((6, "99999999999"), "SITE"),
        ((8, "x"), "A"),
        ((7, "1e5"), "A"),
        ((19, ""), "NICE"),
        ((20, "cpu"), "TRES"),
        ((20, "nonsense=1"), "TRES"),
    ],
)
def test_damaged_sprio_line_is_reported(damage: tuple[int, str], field: str) -> None:
    good, other, *_ = printed("fair-tree", "sprio-everything").splitlines()
    cells = good.split("|")
    cells[damage[0]] = damage[1]
    parsed = sprio.read_factors("\n".join([good, "|".join(cells), other]))
    assert [(line.row.job, line.line) for line in parsed.rows] == [(10, 1), (11, 3)]
    assert [(lost.line, lost.field) for lost in parsed.unreadable] == [(2, field)]


def test_job_is_listed_once_for_each_partition_and_qos() -> None:
    lines = printed("fair-tree", "sprio-everything").splitlines()[1:3]
    parsed = sprio.read_factors("\n".join([*lines, lines[0].replace("16961", "16962")]))
    assert [line.row.partition_name for line in parsed.rows] == ["cpu", "gpu"], (
        "of two different lines, the first is kept"
    )
    assert list(map(str, parsed.unreadable)) == [
        "sprio, line 3, JOBID: job 11 is listed twice in partition cpu"
    ]
    named = [f"{lines[0]}|chem|normal", f"{lines[0]}|chem|high", f"{lines[0]}|chem|normal"]
    parsed = sprio.read_factors("\n".join(named), sprio.LETTERS + sprio.NAMES)
    assert sorted(line.row.qos_name for line in parsed.rows) == ["high", "normal"]
    assert [(lost.line, lost.field) for lost in parsed.unreadable] == [(3, "JOBID")]


def test_pending_jobs_of_2205() -> None:
    parsed = job_lines.read_pending(printed("fair-tree", "jobs"))
    assert parsed.unreadable == ()
    by_number = {job.job_id: job for job in parsed.rows}
    assert sorted(by_number) == list(range(10, 21))
    several = by_number[11]
    assert (several.user, several.account, several.qos, several.partitions) == (
        "bob",
        "wg_bio",
        ("normal",),
        ("cpu", "gpu"),
    )
    assert (several.priority, several.nice, several.nodes, several.cpus, several.limit_minutes) == (
        16961,
        0,
        1,
        40,
        30,
    )
    assert several.tres == "cpu=40,mem=3G,node=1"
    assert several.submitted == several.accrued == 1795305199
    array = by_number[13]
    assert (array.tasks, array.accrued) == ("1-5", 1795305200)
    assert (by_number[12].nodes, by_number[18].nodes, by_number[18].nice, by_number[17].nice) == (
        2,
        6,
        -123456,
        2_000_000_000,
    )
    held, later = by_number[19], by_number[20]
    assert (held.priority, held.accrued) == (0, None)
    assert later.accrued is None


@pytest.mark.parametrize("where", ["JobName=sbatch", "WorkDir=/lab/home/alice"])
def test_job_name_like_a_line_of_scontrol_is_not_trusted(where: str) -> None:
    honest = next(
        line for line in printed("fair-tree", "jobs").splitlines() if line.startswith("JobId=10 ")
    )
    forged = (
        " UserId=root(0) GroupId=root(0) MCS_label=N/A Priority=4294967295 Nice=0 Account=root"
        " QOS=high JobState=PENDING Reason=None"
    )
    parsed = job_lines.read_pending(honest.replace(where, where + forged))
    assert parsed.rows == ()
    assert [(lost.line, lost.field) for lost in parsed.unreadable] == [(1, "UserId")]
    partial = job_lines.read_pending(
        honest.replace(where, f"{where} Partition=gpu Nice=-5 ArrayTaskId=1-9 JobName=x NumCPUs=1")
    )
    (job,) = partial.rows
    assert (job.partitions, job.nice, job.tasks, job.cpus) == (("cpu",), 100, "", 8)


@pytest.mark.parametrize(
    ("damage", "field"),
    [
        (("JobId=10 ", "JobId=x "), "JobId"),
        (("NumNodes=1", "NumNodes=some"), "NumNodes"),
        (("NumCPUs=8", "NumCPUs=x"), "NumCPUs"),
        (("TimeLimit=00:30:00", "TimeLimit=soon"), "TimeLimit"),
        (("SubmitTime=2026", "SubmitTime=x"), "SubmitTime"),
        (("AccrueTime=2026-11-21T23:53:19 ", ""), "AccrueTime"),
        (("Partition=cpu", "Partition=a,-b"), "Partition"),
        (("TRES=cpu=8", "TRES=cpu=many"), "TRES"),
        (("Nice=100", "Nice=99999999999"), "Nice"),
        (("Nice=100", f"Nice={NICE_MAX + 1}"), "Nice"),
        (("Priority=33631", "Priority=4294967296"), "Priority"),
        (("UserId=alice(60601)", "UserId=alice"), "UserId"),
    ],
)
def test_damaged_job_is_reported(damage: tuple[str, str], field: str) -> None:
    lines = [
        line
        for line in printed("fair-tree", "jobs").splitlines()
        if line.startswith(("JobId=10 ", "JobId=11 "))
    ]
    parsed = job_lines.read_pending("\n".join([lines[0].replace(*damage), lines[1]]))
    assert [job.job_id for job in parsed.rows] == [11]
    assert [(lost.line, lost.field) for lost in parsed.unreadable] == [(1, field)]


def test_output_without_jobs() -> None:
    assert job_lines.read_pending("No jobs in the system\n").rows == ()


def test_association_priorities_are_read() -> None:
    parsed = sacctmgr.PRIORITIES.read("root|||\n chem|dave||40\nchem|dave|gpu|7\nbio|eve||many\n")
    assert [(row.account, row.user, row.partition, row.priority) for row in parsed.rows] == [
        ("root", "", "", 0),
        ("chem", "dave", "", 40),
        ("chem", "dave", "gpu", 7),
    ]
    assert [(lost.line, lost.field) for lost in parsed.unreadable] == [(4, "Priority")]


def test_partition_factor_and_tres_are_read() -> None:
    by_name = {
        place.name: place for place in read_partitions(printed("fair-tree", "partitions")).rows
    }
    assert {name: place.factor for name, place in by_name.items()} == {
        "cpu": 1,
        "gpu": 1,
        "gpu-t4": 1,
        "a_partition_of_a_long_name": 10,
    }
    assert by_name["gpu"].tres == "cpu=96,mem=1000G,node=2,gres/gpu=8"
