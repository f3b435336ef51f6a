"""Tests of `fairbank why` for a job that waits at Slurm. The expected output for the recorded queue
is in tests/golden/why-at-slurm. After an intended change, run `WRITE_GOLDEN=1 pytest
tests/cli/test_why_at_slurm.py` and read the diff.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from shutil import copytree

import msgspec
import pytest

from fairbank.cli import main
from fairbank.cli.commands.slurm.why import missing_range
from fairbank.scheduling.explain.answer import Explanation, NoStartRange
from fairbank.scheduling.explain.earlier_start import SHORTER
from fairbank.scheduling.reason import explain_reason
from fairbank.slurm.policy_file import render
from tests.cli.conftest import CommandResult, Run, runner, session
from tests.cli.served_site import Bank
from tests.plugins.policies import BIO, SITE_POLICY
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
    assert explain_reason(data["code"])


def test_json_output(run: Run) -> None:
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


def test_no_advice_omits_suggestions(run: Run) -> None:
    result = run(JOBS["fast"], "--json", "--no-advice", "--no-likely")
    assert result.code == 0
    assert re.search(r'"?suggestion"?: null', result.out)
    assert re.search(r'"?tried"?: null', result.out)


def test_no_likely_omits_the_start_range(run: Run) -> None:
    data = json.loads(run(JOBS["gpus"], "--json", "--no-likely").out)["data"][0]
    assert (data["likely"], data["expected"]) == (None, "2026-11-22T18:31:15Z")


@pytest.mark.parametrize(
    ("untold", "ahead", "words"),
    [
        (None, (), []),
        (
            NoStartRange.NOT_QUEUED,
            (),
            ["no likely start: it does not stand in the queue (BeginTime)"],
        ),
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
    untold: NoStartRange | None, ahead: tuple[int, ...], words: list[str]
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
        missing_range_reason=untold,
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
    assert "ok credit: needs a hold of 0.16 SU, available 59,408 of chem_qmc/cpu" in " ".join(
        result.out.split()
    )


def test_project_unknown_to_the_bank_is_reported(
    run: Run, bank: Bank, clean_env: pytest.MonkeyPatch
) -> None:
    clean_env.setenv("FAIRBANK_SERVER", bank.unix)
    result = run(JOBS["second"], "--no-likely", "--no-advice")
    assert result.code == 0
    assert "credit:" not in result.out
    assert result.err.startswith("nothing is known of its funds: ")


def tried(result: CommandResult) -> list[str]:
    """Return the changes that were tried to start a job sooner."""
    options: list[str] = json.loads(result.out)["data"][0]["tried"]
    return options


def test_partition_without_credit_is_not_suggested(run: Run, bank: Bank, bank_queue: Path) -> None:
    words = (JOBS["second"], "--no-likely", "--json")
    moves = ["-p idle-std,gpu", "-p idle-std,gpu-t4"]
    assert tried(run(*words, folder=bank_queue)) == [*moves, SHORTER]
    assert tried(run(*words, "--server", bank.unix, folder=bank_queue)) == [SHORTER]


def test_partition_that_the_policy_refuses_is_not_suggested(run: Run, tmp_path: Path) -> None:
    """The strict policy admits one partition, and all jobs of wg_chem go to gpu-t4."""
    copytree(QUEUE, tmp_path / "some")
    path = tmp_path / "some" / "policy"
    words = (JOBS["second"], "--no-likely", "--json")
    path.write_text(render(SITE_POLICY))
    assert tried(run(*words, folder=path.parent)) == [SHORTER]
    path.write_text(render(msgspec.structs.replace(SITE_POLICY, projects=(BIO,), balances=None)))
    assert tried(run(*words, folder=path.parent)) == ["-p gpu", "-p gpu-t4", SHORTER]


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
    assert warning.startswith("nothing is known of its funds: ")


# --- errors ---


def test_unknown_job_is_not_found(run: Run) -> None:
    result = run(999)
    assert (result.code, result.out) == (3, "")
    assert "slurmctld has no job 999 that waits" in result.err
    assert "squeue --states=PENDING" in result.err


def test_running_job_is_refused(run: Run) -> None:
    result = run(1)
    assert (result.code, result.out) == (7, "")
    assert "job 1 does not wait: it is running since" in result.err
    assert "c01, c02, c03" in result.err.replace("\n    ", " ")


def test_invalid_job_id_is_reported(run: Run) -> None:
    result = run("render")
    assert result.code == 2
    assert "'render' is no job id" in result.err


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


def test_unreadable_input_is_reported_and_left_out(run: Run, tmp_path: Path) -> None:
    copytree(QUEUE, tmp_path / "some")
    jobs = tmp_path / "some" / "jobs.txt"
    jobs.write_text(jobs.read_text() + "JobId=900 JobName=x\n")
    result = run(JOBS["second"], "--no-likely", folder=tmp_path / "some")
    assert result.code == 8
    assert "! not read: scontrol show job, line" in result.err
    assert "user dave, account wg_chem" in result.out
