"""Tests of `fairbank why` for a job that waits at Slurm. The expected output for the recorded queue
is in tests/golden/why-at-slurm. After an intended change, run `WRITE_GOLDEN=1 pytest
tests/cli/test_why_at_slurm.py` and read the diff.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from shutil import copytree

import msgspec
import pytest

from fairbank.cli import main
from fairbank.cli.commands.slurm.why import missing_range
from fairbank.core.errors import Unavailable
from fairbank.core.time import parse_instant
from fairbank.scheduling.explain.answer import Explanation, NoStartRange
from fairbank.scheduling.explain.earlier_start import SHORTER
from fairbank.scheduling.reason import explain_reason
from fairbank.slurm.explain.allowed_changes import RECORDED_POLICY_FILE
from fairbank.slurm.explain.queue_explanation import QueueExplanation, explain
from fairbank.slurm.output import RECORDING_MAX
from fairbank.slurm.policy_file import PolicyBalance, render
from tests.cli.conftest import CommandResult, Run, runner, session
from tests.cli.output_values import fold
from tests.cli.served_site import Bank
from tests.plugins.policies import BIO, OPEN_POLICY, SITE_POLICY
from tests.support.golden import GOLDEN, kept

FOLDER = GOLDEN / "why-at-slurm"
QUEUE = GOLDEN / "slurm-22.05" / "queue"
JOBS = {
    name: job
    for job, name in re.findall(
        r"(?m)^JobId=(\d+) .*?JobName=(\S+) .*?JobState=PENDING", (QUEUE / "jobs.txt").read_text()
    )
    if name != "sbatch"
}
"""Numbers of the pending jobs, by name."""
# Two jobs with a range of likely starts, and those that have none. A range takes seconds, because
# it is that of many simulated runs, so the ranges of the other jobs are compared in the campaign.
COMPLETE = {"whole", "gpus", "after", "held", "long"}


def without_start(text: str) -> str:
    """Remove the lines with the start, which differ without a range."""
    return re.sub(r"(?m)^Start .*\n(?: {10}.*\n)*", "", text)


@pytest.fixture
def run(clean_env: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*words: object, folder: Path = QUEUE) -> CommandResult:
        return runner(main.run, capsys)("why", *words, "--from", folder)

    return call


@pytest.mark.parametrize(
    "name",
    [
        name if name in COMPLETE else pytest.param(name, marks=pytest.mark.campaign)
        for name in sorted(JOBS)
    ],
)
def test_output_matches_the_golden_file(run: Run, name: str) -> None:
    lines = session(f"fairbank why {JOBS[name]}", run(JOBS[name]))
    assert lines == kept(FOLDER / f"{name}.txt", lines)


@pytest.mark.parametrize("name", sorted(set(JOBS) - COMPLETE))
def test_output_without_start_range_matches_the_golden_file(run: Run, name: str) -> None:
    result = run(JOBS[name], "--no-likely")
    golden = (FOLDER / f"{name}.txt").read_text()
    assert without_start(session(f"fairbank why {JOBS[name]}", result)) == without_start(golden)


def test_every_golden_file_has_a_test() -> None:
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(JOBS)


@pytest.mark.parametrize("name", sorted(JOBS))
def test_reason_equals_that_of_slurmctld(run: Run, name: str) -> None:
    """The reason is recomputed: of the recorded reasons only those are used that cannot be
    computed.
    """
    data = json.loads(run(JOBS[name], "--json", "--no-likely", "--no-advice").out)["data"][0]
    assert data["code"] == data["slurm_reason"]
    assert data["headline"].endswith(".")
    assert any(not check["ok"] for check in data["checks"]), "nothing keeps it waiting"
    assert explain_reason(data["code"]).endswith(".")


def test_json_names_schema_cluster_and_the_waiting_job(run: Run) -> None:
    document = json.loads(run(JOBS["second"], "--json", "--no-likely").out)
    assert (document["schema"], document["cluster"], document["warnings"]) == (
        "fairbank.why/1",
        "lab",
        [],
    )
    (data,) = document["data"]
    assert (data["job"], data["user"], data["partitions"]) == (JOBS["second"], "dave", ["cpu"])
    assert data["position"] is None or data["position"] <= data["waiting"]


def test_array_task_is_named_as_in_squeue(run: Run) -> None:
    number = JOBS["tasks"]
    assert (
        json.loads(run(f"{number}_9", "--json", "--no-likely").out)["data"][0]["job"]
        == f"{number}_9"
    )
    assert json.loads(run(number, "--json", "--no-likely").out)["data"][0]["job"] == f"{number}_1"


@pytest.mark.parametrize("tasks", ["1-5,9%2", "1,3,5,...%2", "1"])
def test_waiting_array_is_named_as_in_squeue(run: Run, tasks: str) -> None:
    number = JOBS["tasks"]
    result = run(f"{number}_[{tasks}]", "--json", "--no-likely")
    assert json.loads(result.out)["data"][0]["job"] == f"{number}_1"


def test_no_advice_omits_suggestions(run: Run) -> None:
    result = run(JOBS["fast"], "--json", "--no-advice", "--no-likely")
    assert result.code == 0
    assert re.search(r'"?suggestion"?: null', result.out)
    assert re.search(r'"?tried"?: null', result.out)


def test_no_likely_omits_the_start_range(run: Run) -> None:
    data = json.loads(run(JOBS["gpus"], "--json", "--no-likely").out)["data"][0]
    assert (data["likely"], data["expected"]) == (None, "2026-11-22T18:31:15Z")


@pytest.mark.parametrize(
    ("missing", "ahead", "words"),
    [
        (None, (), []),
        (NoStartRange.NOT_QUEUED, (), ["no likely start: it is not in the queue (BeginTime)"]),
        (NoStartRange.TOO_FAR, (), ["no likely start: it is too far off to be simulated here"]),
        (
            NoStartRange.TOO_FAR,
            (1,),
            ["no likely start: with 1 job ahead it is too far off to be simulated here"],
        ),
        (
            NoStartRange.TOO_FAR,
            (1, 2),
            ["no likely start: with 2 jobs ahead it is too far off to be simulated here"],
        ),
        (
            NoStartRange.NO_START,
            (1,),
            ["no likely start: as far as the simulated runs went, BeginTime kept it waiting"],
        ),
    ],
)
def test_missing_start_range_is_explained(
    missing: NoStartRange | None, ahead: tuple[int, ...], words: list[str]
) -> None:
    result = Explanation(
        number=3,
        code="BeginTime",
        headline="",
        checks=(),
        position=None,
        ahead=ahead,
        waiting=2,
        expected=None,
        missing_range_reason=missing,
    )
    assert missing_range(result) == words


def test_no_accounting_means_no_likely_start(run: Run, tmp_path: Path) -> None:
    copytree(QUEUE, tmp_path / "some")
    history = tmp_path / "some" / "history.txt"
    history.write_text("")
    result = run(JOBS["gpus"], folder=tmp_path / "some")
    assert result.code == 0
    assert (
        "no likely start: accounting has no job with a time limit that ended in the last 14 days"
        in " ".join(result.err.split())
    )
    history.unlink()
    result = run(JOBS["gpus"], "--json", folder=tmp_path / "some")
    document = json.loads(result.out)
    assert (result.code, document["data"][0]["likely"]) == (0, None)
    assert [warning.split(" in ")[0] for warning in document["warnings"]] == [
        "no likely start: there is no history.txt"
    ]


def test_unreadable_accounting_lines_are_counted(run: Run, tmp_path: Path) -> None:
    copytree(QUEUE, tmp_path / "some")
    history = tmp_path / "some" / "history.txt"
    history.write_text(history.read_text() + "1|2|3\n")
    result = run(JOBS["gpus"], "--json", folder=tmp_path / "some")
    document = json.loads(result.out)
    assert (result.code, document["data"][0]["likely"]["simulated_runs"]) == (0, 100)
    assert "1 line of accounting could not be read" in document["warnings"][0]


# --- dependencies ---


@pytest.mark.parametrize(
    ("text", "headline", "ok", "evidence"),
    [
        (
            "afterany:17(unfulfilled),afterok:15_*(unfulfilled)",
            "Job 10 waits for 2 dependencies, the first of which is: "
            "job 17 has ended (Dependency).",
            False,
            "job 17 has ended: not yet, it waits (Priority); "
            "every task of array 15 has completed: not yet, job 15_1 and 5 more wait (Priority)",
        ),
        (
            "after:1+30(unfulfilled)",
            "Job 10 waits until 30 minutes have passed since job 1 started (Dependency).",
            False,
            "30 minutes have passed since job 1 started: not yet, that is at 2026-11-22T18:31:15Z",
        ),
        (
            "afterok:999(failed)?aftercorr:15_*(unfulfilled)",
            "Job 10 waits for one of 2 dependencies, the first of which is: "
            "job 999 has completed (Dependency).",
            False,
            "one of these is enough: job 999 has completed: can never be satisfied, "
            "it is not in the queue any more; "
            "the same task of array 15 has completed: not yet, job 15_1 and 5 more wait (Priority)",
        ),
        (
            "(null)",
            "Job 10 waits, says slurmctld: A job that it depends on has not started or ended as"
            " required; no check here finds why (Dependency).",
            True,
            "none is open",
        ),
        (
            "on:tuesdays",
            "Job 10 waits: A job that it depends on has not started or ended as required "
            "(Dependency).",
            False,
            "they cannot be parsed: on:tuesdays",
        ),
    ],
)
def test_each_dependency_is_reported_with_the_state_of_its_job(
    run: Run, tmp_path: Path, text: str, headline: str, ok: bool, evidence: str
) -> None:
    copytree(QUEUE, tmp_path / "some")
    jobs = tmp_path / "some" / "jobs.txt"
    jobs.write_text(
        jobs.read_text().replace("Dependency=afterok:1(unfulfilled)", f"Dependency={text}")
    )
    result = run(JOBS["after"], "--json", "--no-likely", "--no-advice", folder=tmp_path / "some")
    (data,) = json.loads(result.out)["data"]
    assert data["headline"] == headline
    assert [check for check in data["checks"] if check["what"] == "dependencies"] == [
        {"what": "dependencies", "ok": ok, "evidence": evidence}
    ]


def test_unsatisfiable_dependency_is_reported_with_the_final_job_state(
    run: Run, tmp_path: Path
) -> None:
    copytree(QUEUE, tmp_path / "some")
    jobs = tmp_path / "some" / "jobs.txt"
    text = jobs.read_text().replace(
        "Reason=Dependency Dependency=afterok:1(unfulfilled)",
        "Reason=DependencyNeverSatisfied Dependency=afterok:2(failed)",
    )
    jobs.write_text(re.sub(r"(?m)^(JobId=2 .*) JobState=RUNNING ", r"\1 JobState=TIMEOUT ", text))
    result = run(JOBS["after"], "--no-likely", "--no-advice", folder=tmp_path / "some")
    output = " ".join(result.out.split())
    assert (
        "Job 10 waits for a dependency that can never be satisfied: job 2 has completed"
        " (DependencyNeverSatisfied)." in output
    )
    assert (
        "x dependencies: job 2 has completed: can never be satisfied, it ended as TIMEOUT;"
        " so it will never start: " in output
    )


# --- rules of slurmctld ---

FREE = 12
"""Job that the user had held. Once released, nodes are free for it now."""


Replacement = str | Callable[[re.Match[str]], str]


def queue_with(folder: Path, reason: str = "None", **changes: tuple[str, Replacement]) -> Path:
    """Return the queue with the held job released, which has this reason, and with patterns
    replaced in files.
    """
    copytree(QUEUE, folder / "some")
    released = rf"(?m)^(JobId={FREE} .*) Priority=0 (.*) Reason=\S+ "
    replacements: list[tuple[str, tuple[str, Replacement]]] = [
        ("jobs", (released, rf"\1 Priority=101000 \2 Reason={reason} "))
    ]
    for name, (pattern, new) in [*replacements, *changes.items()]:
        path = folder / "some" / f"{name}.txt"
        text, count = re.subn(pattern, new, path.read_text())
        assert count
        path.write_text(text)
    return folder / "some"


def why(run: Run, folder: Path, job: object = FREE) -> tuple[str, dict[str, tuple[bool, str]]]:
    """Return the headline, and the checks by name."""
    result = run(job, "--json", "--no-likely", "--no-advice", folder=folder)
    assert result.code == 0, result.err
    (data,) = json.loads(result.out)["data"]
    checks = {check["what"]: (check["ok"], check["evidence"]) for check in data["checks"]}
    assert not all(ok for ok, _ in checks.values()) or "no check here" in data["headline"]
    return data["headline"], checks


def test_job_can_start_only_if_slurmctld_has_no_reason(run: Run, tmp_path: Path) -> None:
    result = run(FREE, folder=queue_with(tmp_path))
    assert (result.code, "job 12 can start" in result.err) == (7, True)


@pytest.mark.parametrize(
    ("reason", "headline"),
    [
        (
            "Resources",
            "Job 12 waits, says slurmctld: It was tested, and too few suitable nodes are free;"
            " no check here finds why, so it may start with the next pass (Resources).",
        ),
        ("BurstBufferResources", None),
        (
            "AssocGrpCpuLimit",
            "Job 12 waits, says slurmctld: All running jobs of the association of this user and"
            " account, or an account above it, together have reached a maximum, which leaves too"
            " few CPUs for this job; no check here finds why (AssocGrpCpuLimit).",
        ),
        (
            "The_license_server_is_away",
            "Job 12 waits, says slurmctld: it gives no other reason; no check here finds why"
            " (The_license_server_is_away).",
        ),
    ],
)
def test_reason_that_no_check_finds_is_slurmctlds(
    run: Run, tmp_path: Path, reason: str, headline: str | None
) -> None:
    """Accounting is not asked: there is neither a range nor advice."""
    folder = queue_with(tmp_path, reason)
    (folder / "history.txt").unlink()
    result = run(FREE, "--json", folder=folder)
    assert "history.txt" not in result.out
    (data,) = json.loads(result.out)["data"]
    assert (result.code, data["code"], data["slurm_reason"]) == (0, reason, reason)
    assert headline is None or data["headline"] == headline
    assert len(data["checks"]) > 5


def test_limit_on_billing_is_named(run: Run, tmp_path: Path) -> None:
    """The fence of slurm sync: 10 minutes with one CPU are 10 billing units times minutes."""
    fence = r"(Account=wg_astro UserName= .* GrpTRESMins=.*?)billing=N\(0\)"
    headline, checks = why(run, queue_with(tmp_path, limits=(fence, r"\1billing=7(7)")))
    evidence = (
        "association of account wg_astro allows 7 billing unit-minutes (GrpTRESMins), 7 used"
        " and 3,833 reserved by running jobs; this job asks for 10"
    )
    assert headline == f"Job 12 waits: {evidence} (AssocGrpBillingMinutes)."
    assert checks["limits in cpu"] == (False, f"AssocGrpBillingMinutes: {evidence}")


@pytest.mark.parametrize(
    ("setting", "headline"),
    [
        (
            "AllowAccounts=wg_bio,wg_chem",
            "AllowAccounts of partition cpu is wg_bio,wg_chem, and the account of this job is"
            " wg_astro (AccountNotAllowed).",
        ),
        (
            "DenyAccounts=wg_astro",
            "DenyAccounts of partition cpu is wg_astro, and the account of this job is wg_astro"
            " (AccountNotAllowed).",
        ),
        (
            "AllowQos=high",
            "AllowQos of partition cpu is high, and the QOS of this job is normal (QOSNotAllowed).",
        ),
        (
            "MaxTime=00:05:00",
            "MaxTime of partition cpu is 00:05:00, and this job asks for 00:10:00"
            " (PartitionTimeLimit).",
        ),
        (
            "MinNodes=2",
            "MinNodes of partition cpu is 2, and this job asks for 1 (PartitionNodeLimit).",
        ),
        (
            "AllocNodes=login[1-2]",
            "AllocNodes of partition cpu is login1,login2, and this job comes from head"
            " (PartitionConfig).",
        ),
        (
            "RootOnly=YES",
            "RootOnly of partition cpu is YES, and the user of this job is alice"
            " (PartitionConfig).",
        ),
        ("State=INACTIVE", "State of partition cpu is INACTIVE (PartitionInactive)."),
    ],
)
def test_partition_setting_is_named(run: Run, tmp_path: Path, setting: str, headline: str) -> None:
    name = setting.partition("=")[0].replace("Deny", "Allow")
    pattern = (rf"(?m)^(PartitionName=cpu .*) {name}=\S+", rf"\1 {setting}")
    headline_shown, checks = why(run, queue_with(tmp_path, partitions=pattern))
    assert headline_shown == f"Job 12 waits: {headline}"
    what = f"{setting.partition('=')[0]} of cpu"
    assert checks[what][0] is False
    assert checks["partition cpu accepts it"][0] is False


def test_limit_of_the_partition_that_the_qos_overrides_is_ok(run: Run, tmp_path: Path) -> None:
    """Job `long` asks for 30 days, and the partition allows 7."""
    flag = (r"(?m)^normal\|[^|]*\|", "normal|PartitionTimeLimit|")
    folder = queue_with(tmp_path, "None", **{"qos-limits": flag})
    (folder / "nodes.txt").write_text(
        re.sub(r" State=\S+", " State=DOWN", (folder / "nodes.txt").read_text())
    )
    _, checks = why(run, folder, JOBS["long"])
    assert checks["partition cpu accepts it"][0] is True
    assert checks["MaxTime of cpu"] == (
        True,
        "7-00:00:00, and this job asks for 30-00:00:00; its QOS overrides this"
        " (PartitionTimeLimit)",
    )


def queue_with_threshold(
    folder: Path, reason: str, threshold: str, release: str = "22.05.8"
) -> Path:
    """Return the queue of a release in which QOS normal has a UsageThreshold."""
    normal = r"(?m)^normal\|\|(.*)\|$"
    row = rf"normal|EnforceUsageThreshold|\1|{threshold}"
    return queue_with(
        folder, reason, **{"qos-limits": (normal, row), "config": (r"22\.05\.8", release)}
    )


SPRIO = "12|cpu||alice|31000|0.000007|0|0|0.0|0|0.0|30000|0.3000000|0|0.0|1000|1.0|0|0.0|0||\n"
SSHARE = """\
root|lab||||0.0|100||1.0|||||1|
 wg_astro|lab|||1|1.0|100|1.0|1.0||1.0|||2|
  wg_astro|lab|alice||1|0.25|100|1.0|0.5|0.75|0.5|||3|
"""


LOW = "QOSUsageThreshold"


@pytest.mark.parametrize("reason", ["None", LOW])
def test_usage_threshold_of_the_qos_is_compared_with_the_weighted_fair_share(
    run: Run, tmp_path: Path, reason: str
) -> None:
    folder = queue_with_threshold(tmp_path, reason, "30000.500000")
    (folder / "sprio.txt").write_text(SPRIO)
    headline, checks = why(run, folder)
    evidence = "30,000.5, and the fair share of this job by its weight is 30,000"
    assert headline == f"Job 12 waits: UsageThreshold of QOS normal is {evidence} ({LOW})."
    assert checks["UsageThreshold of QOS normal"] == (False, evidence)


def test_node_that_cannot_be_read_is_named_and_hides_no_other(run: Run, tmp_path: Path) -> None:
    """The queue has nodes c01 to c06 in cpu. Job 12 is held, and then could start."""
    bad_line = (r"\A(.*?)CPUTot=64", r"\1CPUTot=many")
    named = "scontrol show node, line 1, CPUTot: 'many'"
    held = run(FREE, "--no-likely", folder=queue_with(tmp_path / "held", LOW, nodes=bad_line))
    assert (held.code, f"! not read: {named}" in fold(held.err)) == (8, True)
    assert "5 of 5 are suitable, and it needs 1" in fold(held.out)
    free = run(FREE, folder=queue_with(tmp_path / "free", nodes=bad_line))
    assert free.code == 7
    assert "job 12 can start: nothing that is known here keeps it waiting; 1 line of Slurm" in fold(
        free.err
    )
    assert named in fold(free.err)


def test_node_of_a_running_job_is_not_free_if_the_line_of_another_was_not_read(
    run: Run, tmp_path: Path
) -> None:
    """Job 1 runs alone on c[01-03]; of the nodes that were read, only c06 of cpu is idle."""
    bad_line = (r"\A(.*?)CPUTot=64", r"\1CPUTot=many")
    result = run(17, "--no-likely", folder=queue_with(tmp_path, nodes=bad_line))
    assert "0 are free now" in fold(result.out)
    note = "the nodes of running jobs whose lines were not read do not count here: job 1"
    assert note in fold(result.err)


def test_fair_share_that_cannot_be_read_is_named(run: Run, tmp_path: Path) -> None:
    folder = queue_with_threshold(tmp_path, LOW, "0.5")
    (folder / "sprio.txt").write_text(SPRIO.replace("|0.3000000|", "|much|"))
    (folder / "sshare.txt").write_text(SSHARE.replace("|1|0.25|", "|1|much|"))
    result = run("12", folder=folder)
    assert result.code == 8
    for command in ("sprio", "sshare"):
        assert f"! not read: {command}, line " in result.err


def test_job_above_the_usage_threshold_can_start(run: Run, tmp_path: Path) -> None:
    folder = queue_with_threshold(tmp_path, "None", "29999.5")
    (folder / "sprio.txt").write_text(SPRIO)
    result = run(FREE, folder=folder)
    assert (result.code, "job 12 can start" in result.err) == (7, True)


@pytest.mark.parametrize(("release", "fair_share"), [("22.05.8", "0.25"), ("25.11.0", "0.75")])
def test_usage_threshold_is_compared_with_the_factor_if_fair_share_has_no_weight(
    run: Run, tmp_path: Path, release: str, fair_share: str
) -> None:
    """Before 25.11 the factor is 2 ** -(0.5 / 0.25), the classic rule, also under Fair Tree."""
    folder = queue_with_threshold(tmp_path, LOW, "0.8", release)
    path = folder / "config.txt"
    path.write_text(re.sub("(PriorityWeightFairShare *=).*", r"\1 0", path.read_text()))
    (folder / "sprio.txt").write_text(SPRIO.replace("|30000|0.3000000|", "|0|0.0000000|"))
    (folder / "sshare.txt").write_text(SSHARE)
    _, checks = why(run, folder)
    evidence = f"0.8, and the fair share of this job by its weight is {fair_share}"
    assert checks["UsageThreshold of QOS normal"] == (False, evidence)


def test_usage_threshold_with_unknown_fair_share_keeps_slurmctlds_reason(
    run: Run, tmp_path: Path
) -> None:
    headline, checks = why(run, queue_with_threshold(tmp_path, LOW, "0.5"))
    assert headline == f"Job 12 waits: {explain_reason(LOW)[:-1]} ({LOW})."
    evidence = "0.5, and the fair share of this job by its weight is unknown"
    assert checks["UsageThreshold of QOS normal"] == (True, evidence)


def test_cpus_of_a_node_that_the_partition_may_use_are_counted(run: Run, tmp_path: Path) -> None:
    """Jobs of the partition have 3 of the 64 CPUs of c05."""
    for most, is_full in ((3, True), (4, False)):
        setting = (r"(?m)^(PartitionName=cpu .*) MaxCPUsPerNode=\S+", rf"\1 MaxCPUsPerNode={most}")
        folder = queue_with(tmp_path / str(most), partitions=setting)
        result = run(FREE, "--json", folder=requesting(folder, "c05", 4_000_000_000))
        assert (result.code == 0) is is_full
        if is_full:
            assert json.loads(result.out)["data"][0]["headline"].startswith(
                "Job 12 waits for nodes that it requests: c05: jobs of partition cpu leave too few"
                " of its 3 CPUs of each node (MaxCPUsPerNode) (Resources)."
            )


def test_component_of_a_heterogeneous_job_names_those_that_wait(run: Run, tmp_path: Path) -> None:
    pattern = r"(?m)^JobId=(12|13) "
    folder = queue_with(tmp_path, jobs=(pattern, r"JobId=\1 HetJobId=12 HetJobOffset=\1 "))
    path = folder / "jobs.txt"
    path.write_text(
        path.read_text()
        .replace("HetJobOffset=12", "HetJobOffset=0")
        .replace("HetJobOffset=13", "HetJobOffset=1")
    )
    headline, checks = why(run, folder, "12+0")
    assert headline == (
        "Job 12+0 waits for component 12+1, because all components start together (Resources)."
    )
    assert checks["components of a heterogeneous job"] == (
        False,
        "slurmctld starts them together: 12+0 could start now; 12+1 waits (PartitionTimeLimit)",
    )
    headline, checks = why(run, folder, 13)
    assert headline.endswith("asks for 30-00:00:00 (PartitionTimeLimit).")
    assert "components of a heterogeneous job" in checks
    path.write_text(path.read_text().replace("TimeLimit=30-00:00:00", "TimeLimit=00:05:00"))
    result = run(12, "--json", folder=folder)
    (data,) = json.loads(result.out)["data"]
    assert data["headline"] == (
        "Job 12+0 waits until a pass of backfill starts all components of heterogeneous job 12"
        " together (Resources)."
    )


def test_components_have_the_start_of_the_whole(run: Run, tmp_path: Path) -> None:
    """Job 12 fits now, and the other component, job 16, when a GPU node is free."""
    gpus = int(JOBS["gpus"])
    folder = queue_with(
        tmp_path,
        jobs=(
            rf"(?m)^JobId=({FREE}|{gpus}) ",
            lambda job: f"{job[0]}HetJobId={FREE} HetJobOffset={int(int(job[1]) == gpus)} ",
        ),
    )
    words = ("--json", "--no-advice", "--no-likely")
    (data,) = json.loads(run(FREE, *words, folder=folder).out)["data"]
    assert data["headline"] == (
        "Job 12+0 waits for component 12+1, because all components start together (Resources)."
        " Reserved start: 2026-11-22T18:31:15Z."
    )
    assert data["expected"] == "2026-11-22T18:31:15Z"
    (other,) = json.loads(run(gpus, "--json", "--no-likely", folder=folder).out)["data"]
    assert other["expected"] == data["expected"]


def requesting(folder: Path, nodes: str, priority: int, job: object = FREE) -> Path:
    """Let a job of the recorded queue request nodes by name, with this priority."""
    path = folder / "jobs.txt"
    text, count = re.subn(
        rf"(?m)^(JobId={job} .*) Priority=\d+ (.*) ReqNodeList=\S+",
        rf"\1 Priority={priority} \2 ReqNodeList={nodes}",
        path.read_text(),
    )
    assert count == 1
    path.write_text(text)
    return folder


BROKEN = (
    r"(?m)^(NodeName=c06 .*) State=\S+ (.*)$",
    r"\1 State=DOWN+DRAIN \2 Reason=fan at 0 rpm, load=1 [root@2026-11-22T17:00:00]",
)


@pytest.mark.parametrize(
    ("priority", "rest"),
    [(4_000_000_000, ""), (1, "; and behind 11 jobs, the first of which is job 5")],
)
def test_requested_node_is_named_with_the_reason_of_its_state(
    run: Run, tmp_path: Path, priority: int, rest: str
) -> None:
    """Nothing starts on it in any order of the queue, though slurmctld's reason is Priority behind
    other jobs.
    """
    folder = requesting(queue_with(tmp_path, "Priority", nodes=BROKEN), "c06", priority)
    headline, checks = why(run, folder)
    evidence = "c06: down, fan at 0 rpm, load=1 (by root, 2026-11-22T17:00:00Z)"
    code = "ReqNodeNotAvail"
    assert headline == f"Job 12 waits for nodes that it requests: {evidence}{rest} ({code})."
    assert checks["requested nodes in cpu"] == (False, evidence)
    result = run(FREE, "--json", "--no-likely", "--no-advice", folder=folder)
    (data,) = json.loads(result.out)["data"]
    assert (data["code"], data["slurm_reason"]) == (code, "Priority")
    shown = run(FREE, "--no-likely", "--no-advice", folder=folder).out
    assert "; slurmctld's reason is Priority" in " ".join(shown.split())


@pytest.mark.parametrize(("priority", "code"), [(4_000_000_000, "Resources"), (1, "Priority")])
def test_requested_node_that_is_busy_is_named(
    run: Run, tmp_path: Path, priority: int, code: str
) -> None:
    folder = requesting(queue_with(tmp_path), "c01", priority)
    headline, checks = why(run, folder)
    evidence = "c01: too few CPUs are free"
    assert headline.startswith(f"Job 12 waits for nodes that it requests: {evidence}")
    assert f"({code})." in headline
    assert checks["requested nodes in cpu"] == (False, evidence)


def test_requested_node_that_only_a_job_ahead_keeps_is_not_the_reason(
    run: Run, tmp_path: Path
) -> None:
    """Job 5 has all nodes from 21:02 on."""
    longer = (rf"(?m)^(JobId={FREE} .*) TimeLimit=\S+", r"\1 TimeLimit=06:00:00")
    none = (r"(?s)\A.+", "No reservations in the system")
    folder = queue_with(tmp_path, jobs=longer, reservations=none)
    headline, checks = why(run, requesting(folder, "c06", 1))
    assert checks["requested nodes in cpu"][1].startswith("c06: reserved for job ")
    assert headline.startswith("Job 12 waits behind ")


def test_request_above_a_group_limit_on_nodes_is_not_ok(run: Run, tmp_path: Path) -> None:
    limit = r"(Account=wg_astro UserName= .* GrpTRES=.*?)node=N\("
    headline, checks = why(run, queue_with(tmp_path, limits=(limit, r"\1node=0(")))
    assert headline == (
        "Job 12 waits: association of account wg_astro allows 0 nodes (GrpTRES), 3 in use; this"
        " job asks for 1 (AssocGrpNodeLimit)."
    )
    assert checks["limits in cpu"][0] is False


def test_limit_that_the_job_meets_on_later_nodes_is_not_ok(run: Run, tmp_path: Path) -> None:
    """Nodes that the account has already count once, so the limit depends on the nodes."""
    limit = r"(Account=wg_bio UserName= .* GrpTRES=.*?)node=N\("
    number = JOBS["contiguous"]
    headline, checks = why(run, queue_with(tmp_path, limits=(limit, r"\1node=2(")), number)
    figures = (
        "association of account wg_bio allows 2 nodes (GrpTRES), 2 in use; this job asks for 2"
    )
    assert headline == f"Job {number} waits: {figures} (AssocGrpNodeLimit)."
    assert checks["limits in cpu"] == (False, f"AssocGrpNodeLimit: {figures}")


# --- deadline ---


def test_deadline_is_read_and_compared_with_the_start(run: Run, tmp_path: Path) -> None:
    copytree(QUEUE, tmp_path / "some")
    jobs = tmp_path / "some" / "jobs.txt"
    number = JOBS["gpus"]
    jobs.write_text(
        re.sub(
            rf"(?m)^(JobId={number} .*) Deadline=N/A ",
            r"\1 Deadline=2026-11-22T19:15:00 ",
            jobs.read_text(),
        )
    )
    result = run(number, "--no-likely", "--no-advice", folder=tmp_path / "some")
    text = " ".join(result.out.split())
    assert "Its expected start is too late to end by its deadline." in text
    assert (
        "x deadline: it must end by 2026-11-22 14:15:00, so it must start by 2026-11-22 13:15:00;"
        in text
    )


# --- credit ---


@pytest.fixture
def bank_queue(tmp_path: Path) -> Path:
    return renamed_queue(tmp_path / "darwin")


def renamed_queue(folder: Path) -> Path:
    """Copy the recorded queue, with the names of the site that the bank serves."""
    copytree(QUEUE, folder)
    for path in folder.glob("*.txt"):
        text = re.sub(
            r"(Partitions?|PartitionName)=cpu\b", r"\1=idle-std", path.read_text()
        ).replace("wg_chem", "chem_qmc")
        path.write_text(re.sub(r"(ClusterName +)= lab", r"\1= darwin", text))
    return folder


def test_needed_hold_and_available_credit_are_reported(
    run: Run, bank: Bank, bank_queue: Path
) -> None:
    result = run(
        JOBS["second"], "--no-likely", "--no-advice", "--server", bank.unix, folder=bank_queue
    )
    assert (result.code, result.err) == (0, "")
    assert "   bank fairbank   cluster darwin\n" in result.out
    assert "ok credit: needs a hold of 0.17 SU, available 59,408 of chem_qmc/cpu" in " ".join(
        result.out.split()
    )


def test_credit_is_never_that_of_another_cluster(run: Run, bank: Bank, bank_queue: Path) -> None:
    """The bank has one cluster, darwin, with a partition and a project of these names."""
    config = bank_queue / "config.txt"
    words = (JOBS["second"], "--no-likely", "--no-advice", "--json", "--server", bank.unix)
    for name, sentence in (
        ("lab", "there is no cluster 'lab'; "),
        ("", "Slurm's settings name no cluster; record them: TZ=UTC scontrol show config > "),
    ):
        config.write_text(re.sub(r"(ClusterName +=).*", rf"\1 {name}", config.read_text()))
        result = run(*words, folder=bank_queue)
        (warning,) = json.loads(result.out)["warnings"]
        assert warning.startswith(f"nothing is known of its credit: {sentence}")


@pytest.mark.parametrize("limit", ["UNLIMITED", "Partition_Limit"])
def test_price_without_any_time_limit_cannot_be_known(
    run: Run, bank: Bank, bank_queue: Path, limit: str
) -> None:
    for name, pattern, value in (
        ("jobs", rf"(?m)^(JobId={JOBS['second']} .*) TimeLimit=\S+", f"TimeLimit={limit}"),
        ("partitions", r"(?m)^(PartitionName=idle-std .*) MaxTime=\S+", "MaxTime=UNLIMITED"),
        ("partitions", r"(?m)^(PartitionName=idle-std .*) DefaultTime=\S+", "DefaultTime=NONE"),
    ):
        path = bank_queue / f"{name}.txt"
        text, count = re.subn(pattern, rf"\1 {value}", path.read_text())
        assert count == 1
        path.write_text(text)
    words = (JOBS["second"], "--no-likely", "--no-advice", "--json")
    result = run(*words, "--server", bank.unix, folder=bank_queue)
    document = json.loads(result.out)
    assert (result.code, document["warnings"]) == (
        0,
        [
            "nothing is known of its credit: its price cannot be known without a time limit, and"
            " neither the job nor partition idle-std has one; set one: scontrol update"
            f" jobid={JOBS['second']} timelimit=HH:MM:SS"
        ],
    )
    assert not [check for check in document["data"][0]["checks"] if check["what"] == "credit"]
    assert json.loads(run(*words, folder=bank_queue).out)["warnings"] == []


def test_project_unknown_to_the_bank_is_reported(
    run: Run, bank: Bank, clean_env: pytest.MonkeyPatch
) -> None:
    clean_env.setenv("FAIRBANK_SERVER", bank.unix)
    result = run(JOBS["second"], "--no-likely", "--no-advice")
    assert result.code == 0
    assert "credit:" not in result.out
    assert result.err.startswith("nothing is known of its credit: ")


def tried(result: CommandResult) -> list[str]:
    """Return the changes that were tried to start a job sooner."""
    options: list[str] = json.loads(result.out)["data"][0]["tried"]
    return options


OWN = ["--mem-per-cpu=500M", SHORTER]
"""Changes of job `second` that need no leave of the site."""


def test_partition_without_credit_is_not_suggested(run: Run, bank: Bank, bank_queue: Path) -> None:
    jobs = bank_queue / "jobs.txt"
    jobs.write_text(re.sub(r"Account=wg_\w+", "Account=chem_qmc", jobs.read_text()))

    def suggestion(*words: str) -> str:
        result = run(JOBS["tasks"], "--no-likely", "--json", *words, folder=bank_queue)
        return str(json.loads(result.out)["data"][0]["suggestion"]["option"])

    assert suggestion() == "-p idle-std,gpu-t4"
    assert suggestion("--server", bank.unix) == "-t 01:59:00"


def test_partition_that_the_policy_refuses_is_not_suggested(run: Run, tmp_path: Path) -> None:
    """The strict policy admits one partition, and all jobs of wg_chem go to gpu-t4."""
    copytree(QUEUE, tmp_path / "some")
    path = tmp_path / "some" / "policy"
    words = (JOBS["second"], "--no-likely", "--json")
    path.write_text(render(SITE_POLICY))
    assert tried(run(*words, folder=path.parent)) == OWN
    path.write_text(
        render(msgspec.structs.replace(SITE_POLICY, projects=(BIO,), balances=None, short_terms=()))
    )
    assert tried(run(*words, folder=path.parent)) == ["-p gpu", "-p gpu-t4", *OWN]


def test_another_qos_is_tried_if_association_and_policy_allow_it(run: Run, tmp_path: Path) -> None:
    copytree(QUEUE, tmp_path / "some")
    words = (JOBS["second"], "--no-likely", "--json")
    folder = tmp_path / "some"
    assert not [option for option in tried(run(*words, folder=folder)) if option.startswith("-q")]
    (folder / "association-qos.txt").write_text("wg_chem|dave||high,low,normal\nwg_bio|dave||low\n")
    assert tried(run(*words, folder=folder))[2:] == ["-q high", "-q low", *OWN]
    policy = msgspec.structs.replace(SITE_POLICY, projects=(BIO,), balances=None, short_terms=())
    (folder / "policy").write_text(render(policy))
    assert tried(run(*words, folder=folder)) == ["-p gpu", "-p gpu-t4", *OWN]


def test_change_whose_price_the_policy_refuses_is_not_suggested(run: Run, tmp_path: Path) -> None:
    """Job `whole` of wg_astro may take three nodes instead of four, if that is paid."""
    copytree(QUEUE, tmp_path / "some")
    folder, clock = tmp_path / "some", parse_instant("2026-11-22T18:01:17Z")

    def suggestion(credit: int, written: int = clock) -> object:
        balance = PolicyBalance("wg_astro", "cpu", credit)
        policy = msgspec.structs.replace(OPEN_POLICY, written=written, balances=(balance,))
        (folder / "policy").write_text(render(policy))
        data = json.loads(run(JOBS["whole"], "--no-likely", "--json", folder=folder).out)["data"][0]
        return data["suggestion"] and data["suggestion"]["option"]

    assert suggestion(10**9) == "-N 3 -n 3"
    assert suggestion(1) is None
    assert suggestion(1, clock - OPEN_POLICY.stale_seconds - 1) == "-N 3 -n 3"


def priced(explained: str, answers: int) -> tuple[QueueExplanation, int]:
    """Return the explanation of a job with a bank that answers some questions and is gone then, and
    the number of questions.
    """
    questions = []

    def quote(request: Mapping[str, object]) -> dict[str, object]:
        questions.append(request)
        if len(questions) > answers:
            raise Unavailable("the bank does not answer")
        paid = {"account": "wg_astro", "resource": "cpu", "amount": 1, "available": 2, "fits": True}
        return {**paid, "longest_seconds": 120, "reason": None, "detail": None, "remedies": []}

    row = explain(
        JOBS[explained], str(QUEUE), advice=True, likely=False, quote=quote, progress=None
    )
    return row, len(questions)


def test_change_of_unknown_price_is_not_suggested() -> None:
    """The bank is away after its first answer. It is not asked again after that."""
    explained, questions = priced("whole", answers=1)
    advice = explained.row.why.advice
    assert advice is not None
    assert advice.suggestion is None
    assert explained.notes == ["no further change is suggested: the bank does not answer"]
    assert questions == 2


def test_bank_is_asked_only_for_changes_that_start_the_job_earlier() -> None:
    explained, questions = priced("second", answers=9)
    advice = explained.row.why.advice
    assert advice is not None
    assert (advice.suggestion, questions) == (None, 1)
    assert advice.tried[:2] == ("-p cpu,gpu", "-p cpu,gpu-t4")


@pytest.mark.parametrize(
    ("name", "text", "note"),
    [
        (
            "policy",
            "damaged",
            "the submission policy is not used: it does not begin as a policy file does; write it"
            " again: fairbank slurm sync",
        ),
        ("association-qos.txt", "wg_chem|dave\n", "1 line of associations could not be read;"),
        ("association-qos.txt", None, "no other QOS is tried: cannot read "),
        ("policy", None, "the submission policy is not used: "),
    ],
)
def test_rules_that_cannot_be_read_are_a_warning(
    run: Run, tmp_path: Path, name: str, text: str | None, note: str
) -> None:
    path = copytree(QUEUE, tmp_path / "some") / name
    if text is None:
        path.mkdir()
    else:
        path.write_text(text)
    result = run(JOBS["second"], "--no-likely", "--json", folder=path.parent)
    (warning,) = json.loads(result.out)["warnings"]
    assert warning.startswith(note)


def test_unreachable_bank_is_a_warning(run: Run, bank_queue: Path, tmp_path: Path) -> None:
    result = run(
        JOBS["second"],
        "--no-likely",
        "--no-advice",
        "--json",
        "--server",
        f"unix:{tmp_path}/none.sock",
        folder=bank_queue,
    )
    document = json.loads(result.out)
    assert result.code == 0
    assert not [check for check in document["data"][0]["checks"] if check["what"] == "credit"]
    (warning,) = document["warnings"]
    assert warning.startswith("nothing is known of its credit: ")


# --- remedies ---


def remedy(run: Run, job: object, folder: Path) -> str | None:
    result = run(job, "--json", "--no-likely", "--no-advice", folder=folder)
    text: str | None = json.loads(result.out)["data"][0]["remedy"]
    return text


@pytest.mark.parametrize(
    ("reason", "who"),
    [
        ("JobHeldUser", "its owner, or an administrator"),
        ("JobHeldAdmin", "an administrator"),
        ("JobHoldMaxRequeue", "an administrator"),
        ("launch_failed_requeued_held", "its owner, or an administrator"),
        ("user_env_retrieval_failed_requeued_held", "its owner, or an administrator"),
        ("launch_failure_limit_exceeded_requeued_held", "an administrator"),
        ("job_requeued_in_special_exit_state", "its owner, or an administrator"),
    ],
)
def test_held_job_has_the_command_that_releases_it(
    run: Run, tmp_path: Path, reason: str, who: str
) -> None:
    copytree(QUEUE, tmp_path / "some")
    jobs = tmp_path / "some" / "jobs.txt"
    jobs.write_text(jobs.read_text().replace("Reason=JobHeldUser ", f"Reason={reason} "))
    assert remedy(run, JOBS["held"], tmp_path / "some") == f"scontrol release 12, by {who}"
    assert remedy(run, JOBS["whole"], tmp_path / "some") is None


def test_longest_allowed_limit_is_that_of_the_most_generous_partition(
    run: Run, tmp_path: Path
) -> None:
    """Job 13 asks for 30 days. Partition cpu allows 7, gpu 2; gpu-t4 would allow 10, but not this
    account.
    """
    copytree(QUEUE, tmp_path / "some")
    jobs, partitions = tmp_path / "some" / "jobs.txt", tmp_path / "some" / "partitions.txt"
    jobs.write_text(
        re.sub(r"(?m)^(JobId=13 .*) Partition=cpu ", r"\1 Partition=gpu,cpu ", jobs.read_text())
    )
    text = partitions.read_text()
    text = re.sub(r"(?m)^(PartitionName=gpu .*) MaxTime=\S+", r"\1 MaxTime=2-00:00:00", text)
    partitions.write_text(text)
    expected = "scontrol update jobid=13 timelimit={}, the longest limit that partition {} allows"
    folder = tmp_path / "some"
    assert remedy(run, 13, folder) == expected.format("7-00:00:00", "cpu")
    denied = r"\1 DenyAccounts=wg_astro\2"
    partitions.write_text(
        re.sub(r"(?m)^(PartitionName=cpu .*) AllowAccounts=ALL(.*)", denied, text)
    )
    assert remedy(run, 13, folder) == expected.format("2-00:00:00", "gpu")


def test_terms_of_the_priority_stand_beside_those_of_the_job_just_ahead(
    run: Run, tmp_path: Path
) -> None:
    """As sprio has them: 101 of 1000 for the size of job 17, 102 for that of job 6."""
    folder = tmp_path / "some"
    copytree(QUEUE, folder)
    without = run(17, "--no-likely", "--no-advice", folder=folder)
    assert (without.code, "Priority  " in without.out) == (0, False)
    sprio = (GOLDEN / "slurm-22.05" / "waiting" / "sprio.txt").read_text()
    (folder / "sprio.txt").write_text(sprio)
    lines = run(17, "--no-likely", "--no-advice", folder=folder).out.splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith("Priority "))
    assert [line.removeprefix("Priority").split() for line in lines[start : start + 7]] == [
        ["job", "17", "job", "6"],
        ["age", "0", "0"],
        ["fair", "share", "100,000", "100,000"],
        ["job", "size", "101", "102"],
        ["partition", "1,000", "1,000"],
        ["QOS", "0", "0"],
        ["together", "101,100", "101,101"],
    ]
    document = json.loads(run(17, "--json", "--no-likely", "--no-advice", folder=folder).out)
    own, ahead = document["data"][0]["priority_terms"]
    assert (own["job_id"], ahead["job_id"], ahead["factors"]["job_size"]) == (17, 6, 101.6447)
    (first,) = json.loads(run(5, "--json", "--no-likely", "--no-advice", folder=folder).out)["data"]
    assert len(first["priority_terms"]) == 1


def test_terms_of_the_priority_stand_beside_a_job_that_is_ahead(run: Run, tmp_path: Path) -> None:
    """sprio also lists a job above the time limit of its partition, behind which no job waits."""
    folder = tmp_path / "some"
    copytree(QUEUE, folder)
    sprio = (GOLDEN / "slurm-22.05" / "waiting" / "sprio.txt").read_text()
    (folder / "sprio.txt").write_text(sprio)
    jobs = folder / "jobs.txt"
    jobs.write_text(
        re.sub(r"(?m)^(JobId=6 .*) TimeLimit=\S+", r"\1 TimeLimit=30-00:00:00", jobs.read_text())
    )
    data = json.loads(run(17, "--json", "--no-likely", "--no-advice", folder=folder).out)["data"]
    (explanation,) = data
    beside = [row["job_id"] for row in explanation["priority_terms"]]
    assert ("6" in explanation["ahead"], beside) == (False, [17, 5])


def test_terms_of_the_priority_that_cannot_be_read_are_named(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "some"
    copytree(QUEUE, folder)
    sprio = (GOLDEN / "slurm-22.05" / "waiting" / "sprio.txt").read_text()
    (folder / "sprio.txt").write_text(sprio + "9|many\n")
    result = run(17, "--no-likely", "--no-advice", folder=folder)
    assert (result.code, "together" in result.out) == (8, True)
    assert "! not read: sprio, line " in result.err
    path = folder / "config.txt"
    path.write_text(re.sub("(PriorityMaxAge *=).*", r"\1 soon", path.read_text()))
    result = run(17, "--no-likely", "--no-advice", folder=folder)
    assert (result.code, "together" in result.out) == (0, False)
    assert "the terms of the priority are not known: " in result.err


# --- errors ---


def test_unknown_job_is_not_found(run: Run) -> None:
    result = run(999)
    assert (result.code, result.out) == (3, "")
    assert "slurmctld has no job 999 that waits" in result.err
    assert "squeue --states=PENDING" in result.err


def test_running_job_is_shown_with_its_latest_end(run: Run) -> None:
    """It started at 18:01:15 with a limit of 20 minutes; the output is of 18:01:17."""
    result = run(1, "--utc")
    assert (result.code, result.err) == (0, "")
    assert " ".join(result.out.split()) == (
        "Job 1 of alice has been running since 2026-11-22 18:01:15 on c[01-03]; it ends by"
        " 2026-11-22 18:21:15 at the latest, in 20 min."
    )
    (data,) = json.loads(run(1, "--json").out)["data"]
    assert (data["job"], data["state"], data["run"]) == ("1", "running", None)
    assert data["slurm"]["ends"] == "2026-11-22T18:21:15Z"


def test_invalid_job_id_is_reported(run: Run) -> None:
    result = run("render")
    assert result.code == 2
    assert "'render' is not a job id" in result.err
    for zero in ("0", "00", "0_3"):
        assert (run(zero).code, f"{zero!r} is not a job id" in run(zero).err) == (2, True)
    result = run("15_[2-x]")
    assert result.code == 2
    assert "'[2-x]' are no tasks of an array" in result.err


def test_missing_slurm_commands_are_reported(
    clean_env: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    clean_env.setenv("PATH", str(tmp_path))
    result = runner(main.run, capsys)("why", 7)
    assert (result.code, result.out) == (6, "")
    assert "cannot run scontrol" in result.err
    assert "run this on a host that has Slurm's commands" in result.err.replace("\n      ", " ")


def test_missing_file_is_reported(run: Run, tmp_path: Path) -> None:
    copytree(QUEUE, tmp_path / "some")
    (tmp_path / "some" / "limits.txt").unlink()
    result = run(JOBS["second"], folder=tmp_path / "some")
    assert result.code == 3
    assert "there is no limits.txt" in result.err
    output = " ".join(result.err.split())
    command = "record it: TZ=UTC scontrol --all --oneliner show assoc_mgr flags=assoc,qos >"
    assert command in output
    assert run(JOBS["second"], folder=tmp_path / "none").code == 3


def test_recorded_file_without_an_end_is_refused(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "some"
    copytree(QUEUE, folder)

    def refusal(path: Path) -> str:
        result = run(JOBS["second"], folder=folder)
        path.unlink()
        assert result.code == 2, result
        return " ".join(result.err.split())

    nodes, policy = folder / "nodes.txt", folder / RECORDED_POLICY_FILE
    text = nodes.read_text()
    nodes.unlink()
    nodes.symlink_to("/dev/zero")
    assert "nodes.txt: it is not a regular file" in refusal(nodes)
    os.mkfifo(nodes)
    assert "nodes.txt: it is not a regular file" in refusal(nodes)
    nodes.touch()
    os.truncate(nodes, RECORDING_MAX + 1)
    assert "nodes.txt has more than 1 GiB" in refusal(nodes)
    nodes.write_text(text)
    os.mkfifo(policy)
    result = run(JOBS["second"], "--no-likely", folder=folder)
    assert f"{RECORDED_POLICY_FILE}: it is not a regular file" in " ".join(result.err.split())


def test_unreadable_input_is_reported_and_left_out(run: Run, tmp_path: Path) -> None:
    copytree(QUEUE, tmp_path / "some")
    jobs = tmp_path / "some" / "jobs.txt"
    jobs.write_text(jobs.read_text() + "JobId=900 JobName=x\n")
    result = run(JOBS["second"], "--no-likely", folder=tmp_path / "some")
    assert result.code == 8
    assert "! not read: scontrol show job, line" in result.err
    assert "user dave, account wg_chem" in result.out


def test_unreadable_line_of_the_job_itself_is_reported(run: Run, tmp_path: Path) -> None:
    copytree(QUEUE, tmp_path / "some")
    jobs = tmp_path / "some" / "jobs.txt"
    jobs.write_text(jobs.read_text() + "JobId=99 JobState=PENDING\nJobId=900 JobName=x\n")
    result = run(99, folder=tmp_path / "some")
    error = " ".join(result.err.split())
    assert result.code == 3
    assert "the line of job 99 could not be read: scontrol show job, line" in error
    assert "scontrol --oneliner show job 99" in error
    assert "slurmctld has no job 98 that waits" in run(98, folder=tmp_path / "some").err
