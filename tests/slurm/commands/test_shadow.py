"""`fairbank shadow` with a running bank and recorded Slurm output."""

from __future__ import annotations

import json

import msgspec
import pytest

from tests.slurm.commands.site import CommandSite
from tests.support.recorded_slurm import line

pytestmark = pytest.mark.slow

PLACES = ("cpu", "gpu", "cpu,gpu")


def partition_lines(*, cpu: str, gpu: str) -> str:
    """Return the lines of the default partition cpu and of gpu with these time limits."""
    return f"PartitionName=cpu Default=YES MaxTime={cpu}\nPartitionName=gpu MaxTime={gpu}\n"


def test_shadow_posts_nothing(site: CommandSite) -> None:
    site.set_accounting(site.job(1), site.job(2, account="bio"), site.job(3, limit_seconds=None))
    (bio, chem) = json.loads(site.output("shadow", "--json"))["data"]
    assert (bio["account"], bio["refused"]) == ("bio", 1)
    assert (chem["jobs"], chem["charged"], chem["refused"], chem["left"]) == (2, 40, 1, 560)
    refused = json.loads(site.output("shadow", "--refused", "--json"))["data"]
    assert {refusal["job_id"]: refusal["reason"] for refusal in refused} == {
        2: "NO_ALLOCATION",
        3: "NO_LIMIT",
    }
    assert site.available() == 600
    notes = [
        line
        for line in site.run("shadow", code=0).err.splitlines()
        if "would have been refused" in line
    ]
    assert sorted(notes) == [
        "1 would have been refused: it has no finite time limit",
        "1 would have been refused: the project has no allocation of this resource",
    ]


def test_history_that_was_imported_is_used_once(site: CommandSite) -> None:
    site.set_accounting(site.job(1))
    (before,) = json.loads(site.output("shadow", "--json"))["data"]
    site.output("slurm", "import", "-S", "now-1day")
    (after,) = json.loads(site.output("shadow", "--json"))["data"]
    assert before == after
    assert (after["charged"], after["left"]) == (40, site.available())


def test_waiting_job_counts_in_its_dearest_partition(site: CommandSite) -> None:
    waiting = site.job(1, state="PENDING", partition="cpu,gpu", tres="cpu=4,gres/gpu=1")
    site.set_accounting(waiting, site.job(2, state="PENDING", account=""))
    rows = json.loads(site.output("shadow", "--json"))["data"]
    assert [(row["account"], row["resource"], row["jobs"]) for row in rows] == [
        ("", "cpu", 1),
        ("chem", "gpu", 1),
    ]
    refused = json.loads(site.output("shadow", "--refused", "--json"))["data"]
    assert {refusal["job_id"]: refusal["reason"] for refusal in refused} == {
        1: "NO_ALLOCATION",
        2: "NO_PROJECT",
    }


def test_job_without_a_readable_price_is_named(site: CommandSite) -> None:
    site.set_accounting(site.job(1), site.job(2, tres="cpu=?"))
    result = site.run("shadow", "--json", code=0)
    assert [row["jobs"] for row in json.loads(result.out)["data"]] == [1]
    assert "! not read: sacct, line 2, AllocTRES" in result.err


@pytest.mark.parametrize(
    ("field", "text"), [("AllocTRES", ""), ("AllocTRES", "billing=??"), ("State", "SOMESTATE")]
)
def test_run_that_cannot_be_judged_is_named(site: CommandSite, field: str, text: str) -> None:
    site.set_accounting_cells(site.job(1), **{field: text})
    result = site.run("shadow", "--json", code=0)
    (left_out,) = json.loads(result.out)["unreadable"]
    assert left_out.startswith(f"sacct, line 1, {field}: ")
    assert f"! not read: {left_out}" in result.err


def test_job_that_was_cancelled_before_its_start_needs_no_tres(site: CommandSite) -> None:
    """Old versions of Slurm record its end as its start."""
    cancelled = site.job(1, state="CANCELLED", elapsed=0)
    site.set_accounting_cells(cancelled, AllocTRES="", ReqTRES="")
    assert json.loads(site.output("shadow", "--json"))["unreadable"] == []


def test_rules_name_the_cells_that_they_could_not_read(site: CommandSite) -> None:
    site.slurm.set_output("sacct-groups", "")
    site.set_accounting_cells(site.job(1, owner=60_601), TimelimitRaw="xx", AllocTRES="")
    result = site.run("shadow", "--rules", "--json", code=0)
    assert [line.split(":")[0] for line in json.loads(result.out)["unreadable"]] == [
        "sacct, line 1, TimelimitRaw"
    ]


def test_run_without_an_account_is_judged_and_named_by_no_rule(site: CommandSite) -> None:
    """Without AccountingStorageEnforce no run has an account."""
    site.slurm.set_output("sacct-groups", "")
    site.set_accounting(site.job(1, account="", owner=60_601))
    for words in ((), ("--rules",)):
        result = site.run("shadow", *words, "--json", code=0)
        assert json.loads(result.out)["unreadable"] == []
        assert "not read" not in result.err


def test_rules_count_the_submissions_that_break_each(site: CommandSite) -> None:
    """The lab's default partition is cpu; chem has the Unix group 50001."""
    owner = {"owner": 60_601}
    site.set_accounting(
        site.job(1, **owner),
        site.job(2, account="nobody", **owner),
        site.job(3, partition="gpu", limit_seconds=None, **owner),
        site.job(4, state="PENDING", partition="gpu,elsewhere", **owner),
        site.job(5, owner=0),
        site.job(6, tres="cpu=1,gres/gpu=1", **owner),
    )
    groups = ((1, 50_001), (2, 50_001), (3, 100), (4, 100), (6, 50_001))
    site.slurm.set_output("sacct-groups", "".join(line(job, group) for job, group in groups))
    path = site.bank.folder / "strict.toml"
    path.write_text('profile = "hadm"')
    words = ("shadow", "--rules", "--json")
    rows = json.loads(site.output(*words, "--site", str(path)))["data"]
    assert {(row["setting"], row["count"], row["action"]): row["jobs"] for row in rows} == {
        ("unlisted", "exact", "ignore"): 1,
        ('account = "member"', "exact", "ignore"): 2,
        ('account = "group"', "exact", "refuse"): 3,
        ("unlisted", "exact", "refuse"): 1,
        ("require_partition", "at most", "refuse"): 3,
        ("one_partition", "at least", "refuse"): 1,
        ("always", "at least", "refuse"): 1,
        ("always", "exact", "refuse"): 1,
    }
    assert {row["of"] for row in rows} == {5}
    actions = {row["setting"]: row["action"] for row in json.loads(site.output(*words))["data"]}
    assert (actions["one_partition"], actions['account = "member"']) == ("ignore", "refuse")
    assert "--site does nothing by itself" in site.run("shadow", "--site", str(path), code=2).err


def test_job_with_the_limit_of_its_partition_is_not_refused(site: CommandSite) -> None:
    """The lab's cpu has DefaultTime=00:30:00, which the policy gives to such a job."""
    site.slurm.set_output("sacct-groups", "")
    waiting = site.job(1, state="PENDING", owner=60_601)
    site.set_accounting_cells(waiting, TimelimitRaw="Partition_Limit")
    rows = json.loads(site.output("shadow", "--rules", "--json"))["data"]
    assert [row["jobs"] for row in rows if row["rule"] == "the time limit is finite"] == [0]
    (row,) = json.loads(site.output("shadow", "--json"))["data"]
    assert (row["refused"], row["held"]) == (0, 120)


GPU_PARTITION = "scontrol show partition, line 2, MaxTime"


def test_only_jobs_with_the_limit_of_an_unreadable_partition_are_left_out(
    site: CommandSite,
) -> None:
    """The others are judged: in cpu by its own MaxTime."""
    site.slurm.set_output("scontrol-show-partition", partition_lines(cpu="01:00:00", gpu="?"))
    none = {"limit_seconds": None, "state": "PENDING"}
    waiting = [site.job(number, **none, partition=name) for number, name in enumerate(PLACES, 1)]
    unlimited = [msgspec.structs.replace(job, has_own_limit=False) for job in waiting]
    site.set_accounting(*unlimited, site.job(9, partition="gpu", state="PENDING"))
    result = site.run("shadow", "--json", code=0)
    document = json.loads(result.out)
    assert [(row["resource"], row["jobs"]) for row in document["data"]] == [("cpu", 1), ("gpu", 1)]
    left_out = [
        f"{GPU_PARTITION}: job {number} has the limit of partition gpu, which was not read"
        for number in (2, 3)
    ]
    assert [line.split(": ")[0] for line in document["unreadable"]][:1] == [GPU_PARTITION]
    assert document["unreadable"][1:] == left_out
    notes = " ".join(result.err.split())
    assert all(f"! not read: {line}" in notes for line in document["unreadable"])
    site.slurm.set_output("sacct-groups", "")
    rules = json.loads(site.output("shadow", "--rules", "--json"))
    (row,) = (row for row in rules["data"] if row["rule"] == "the time limit is finite")
    assert (row["jobs"], rules["unreadable"]) == (0, document["unreadable"])


def test_rules_that_an_unreadable_line_hides_are_not_counted(site: CommandSite) -> None:
    """Job 2 is judged by its group, and that of job 1 is unknown: it may be the project's."""
    site.slurm.set_output("scontrol-show-partition", partition_lines(cpu="?", gpu="01:00:00"))
    site.slurm.change_output("scontrol-show-node", "CPUTot=64", "CPUTot=many")
    site.set_accounting(*(site.job(number, owner=60_601) for number in (1, 2)))
    site.slurm.set_output("sacct-groups", line(1, "wheel") + line(2, 100))
    result = site.run("shadow", "--rules", "--json", code=0)
    document = json.loads(result.out)
    assert [text.split(":")[0] for text in document["unreadable"]] == [
        "sacct, line 1, GID",
        "scontrol show partition, line 1, MaxTime",
        "scontrol show node, line 1, CPUTot",
    ]
    jobs = {row["rule"]: row["jobs"] for row in document["data"]}
    hidden = ("--partition is given", "the partition, or one of several, has the GPUs")
    for rule in hidden:
        assert rule not in jobs
        assert f"not counted, as a line was not read: {rule}" in " ".join(
            site.run("shadow", "--rules", code=0).err.split()
        )
    assert jobs["the user is a member of the account's project"] == 1


def test_exempt_submissions_are_counted_apart(site: CommandSite) -> None:
    site.set_accounting(site.job(1, owner=0), site.job(2, owner=60_700), site.job(3, owner=60_700))
    site.slurm.set_output("sacct-groups", "")
    path = site.bank.folder / "exempt.toml"
    path.write_text("exempt = [60700]")
    shown = site.run("shadow", "--rules", "--site", str(path), code=0).err
    note = "3 submissions are not checked and not counted: 1 of root, 2 of users in `exempt`"
    assert note in shown
    site.set_accounting(site.job(4, owner=60_601))
    result = site.run("shadow", "--rules", "--site", str(path), code=0)
    assert "not checked" not in result.err
