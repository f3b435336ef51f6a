"""Tests of `prio --check`: recorded priorities of a real Slurm, compared with priorities computed
from its other output.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import CommandResult, Run
from tests.cli.output_values import fold
from tests.support.fairshare_recordings import other_output, printed
from tests.support.recorded_slurm import RecordedSlurm

FILES = {
    "sshare": "sshare-everything",
    "sprio": "sprio-everything",
    "config": "config",
    "jobs": "jobs",
    "partitions": "partitions",
}


@pytest.fixture
def run(fairbank: Run, tmp_path: Path) -> Callable[..., CommandResult]:
    """Run a command on a directory of recorded output; `changed` replaces texts of its files, None
    removes a file.
    """

    def call(*words: object, rule: str = "fair-tree", **changed: str | None) -> CommandResult:
        output = (
            {name: printed(rule, recorded) for name, recorded in FILES.items()}
            | other_output()
            | changed
        )
        for name, text in output.items():
            if text is not None:
                (tmp_path / f"{name}.txt").write_text(text)
        return fairbank(*words, "--from", tmp_path)

    return call


def test_computed_factors_equal_those_of_slurm(run: Callable[..., CommandResult]) -> None:
    result = run("prio", "--check", "-j", "10,11,12,13,14,15,17")
    assert (result.out, result.err, result.code) == ("8 rows computed: no differences\n", "", 0)


def test_job_size_of_an_exclusive_job_may_differ(run: Callable[..., CommandResult]) -> None:
    result = run("prio", "--check")
    assert (
        result.out == "JOBSIZE of job 18 in cpu: Slurm says 616, computed 305\n9 rows computed: 1"
        " difference\n"
    )
    assert "Not computed: 1 row of jobs with a fixed priority" in result.err
    assert "slurmctld counts all their CPUs once it has tried to place it" in fold(result.err)
    assert result.code == 8


@pytest.mark.parametrize(
    ("file", "change", "differences"),
    [
        ("qos", ("high|100", "high|50"), []),  # still the highest
        ("qos", ("low|1|", "low|200|"), ["QOS of job 12 in gpu: Slurm says 1000, computed 500"]),
        (
            "associations",
            ("alice||40", "alice||50"),
            ["ASSOC of job 10 in cpu: Slurm says 200, computed 250"],
        ),
        ("jobs", ("Nice=100 ", "Nice=90 "), ["NICE of job 10 in cpu: Slurm says 100, computed 90"]),
        (
            "partitions",
            ("cpu=96,mem=1000G", "cpu=960,mem=1000G"),
            ["TRES of job 11 in gpu:", "TRES of job 12 in gpu:"],
        ),
    ],
)
def test_later_changes_are_reported(
    run: Callable[..., CommandResult], file: str, change: tuple[str, str], differences: list[str]
) -> None:
    text = other_output().get(file) or printed("fair-tree", FILES[file])
    assert change[0] in text
    result = run("prio", "--check", "-j", "10,11,12", **{file: text.replace(*change)})
    *lines, last = result.out.splitlines()
    assert len(lines) == len(differences)
    for line, begins in zip(lines, differences, strict=True):
        assert line.startswith(begins)
    assert last.startswith("4 rows computed: ")
    assert ("counts from the next one on" in fold(result.err), result.code) == (
        (True, 8) if differences else (False, 0)
    )


def test_job_has_the_factor_of_its_association(run: Callable[..., CommandResult]) -> None:
    result = run("prio", "--check", "-j", "11", rule="classic")
    assert (result.out, result.code) == ("2 rows computed: no differences\n", 0)
    less = printed("classic", "sshare-everything").replace("|0.999994|", "|0.999993|")
    result = run("prio", "--check", "-j", "11", "-p", "cpu", rule="classic", sshare=less)
    assert result.out.startswith(
        "FAIRSHARE of job 11 in cpu: Slurm says 0.9999940, computed 0.9999925"
    )
    assert "A job has the factor that its association had at slurmctld's last tick" in fold(
        result.err
    )


def test_accrue_always_counts_age_from_submission(run: Callable[..., CommandResult]) -> None:
    jobs = re.sub(
        r"(JobId=10 .*? SubmitTime=2026-11-21T)23:53", r"\g<1>22:53", printed("fair-tree", "jobs")
    )
    always = re.sub(
        r"(?m)^PriorityFlags .*$", "PriorityFlags = ACCRUE_ALWAYS", printed("fair-tree", "config")
    )
    assert (
        run("prio", "--check", "-j", "10,12", jobs=jobs).out == "2 rows computed: no differences\n"
    )
    output = run("prio", "--check", "-j", "10,12", jobs=jobs, config=always).out
    assert output.startswith("AGE of job 10 in cpu: Slurm says 0, computed 6\n")


def test_each_qos_row_of_a_job_has_its_own_factor(run: Callable[..., CommandResult]) -> None:
    """Newer releases of Slurm print the QOS of each row."""
    jobs = re.sub(r"(JobId=12 .*? QOS=)high", r"\g<1>high,normal", printed("fair-tree", "jobs"))
    line = next(
        line
        for line in printed("fair-tree", "sprio-everything").splitlines()
        if line.startswith("12 ")
    )
    high, without = f"{line}|wg_bio|high\n", f"{line}|wg_bio|normal\n"
    part = f"{28_726 / (2**32 - 1):16.14f}"
    normal = re.sub(
        r"\|29726 *\|[\d.]+ *\|",
        f"|28726|{part}|",
        re.sub(r"\|1000 *\|1\.0000000 *\|(?=0 )", "|0|0.0000000|", without),
    )
    assert normal.count("|28726|") == normal.count("|0|0.0000000|") == 1
    assert (
        run("prio", "--check", jobs=jobs, sprio=high + normal).out
        == "2 rows computed: no differences\n"
    )
    output = run("prio", "--check", jobs=jobs, sprio=high + without).out
    assert output.startswith("QOS of job 12 in gpu: Slurm says 1000, computed 0\n")


def test_incomplete_input_computes_nothing(run: Callable[..., CommandResult]) -> None:
    result = run(
        "prio",
        "--check",
        jobs=printed("fair-tree", "jobs").replace("NumNodes=1 ", "NumNodes=some ", 20),
    )
    assert (result.code, result.out) == (2, "")
    assert "! not read: scontrol show job, line " in result.err
    assert "field: --check" in result.err


def test_missing_setting_is_named(run: Callable[..., CommandResult]) -> None:
    config = "".join(
        line
        for line in printed("fair-tree", "config").splitlines(keepends=True)
        if "AccountingStorageTRES" not in line
    )
    result = run("prio", "--check", config=config)
    assert (result.code, result.out) == (2, "")
    assert "field: AccountingStorageTRES" in result.err


@pytest.mark.parametrize("missing", ["jobs", "partitions", "nodes", "qos", "associations"])
def test_missing_file_is_named(run: Callable[..., CommandResult], missing: str) -> None:
    result = run("prio", "--check", **{missing: None})
    assert result.code == 3
    assert f"there is no {missing}.txt in " in fold(result.err)


def test_all_missing_files_are_named_at_once(run: Callable[..., CommandResult]) -> None:
    result = run("prio", "--check", jobs=None, qos=None, associations=None)
    assert result.code == 3
    error = fold(result.err)
    assert "there is no jobs.txt, qos.txt, associations.txt in " in error
    assert "TZ=UTC scontrol --all --oneliner show job > " in error
    assert "show associations" in error
    assert "cluster=lab" in error


def test_commands_sent_to_slurm(
    fairbank: Run, tmp_path: Path, clean_env: pytest.MonkeyPatch
) -> None:
    slurm = RecordedSlurm(tmp_path / "slurm")
    answers = {
        "sshare": "sshare",
        "sprio": "sprio",
        "scontrol-show-config": "config",
        "scontrol-show-job": "jobs",
    }
    for name, recorded in answers.items():
        slurm.set_output(name, printed("fair-tree", FILES[recorded]))
    slurm.set_output("scontrol-show-partition", printed("fair-tree", "partitions"))
    slurm.set_output("squeue", "")
    slurm.set_output("sinfo", "slurm-wlm 22.05.8\n")
    slurm.set_output("scontrol-show-node", other_output()["nodes"])
    slurm.set_output("sacctmgr-show-qos", other_output()["qos"])
    slurm.set_output("sacctmgr-show-associations", other_output()["associations"])
    clean_env.setenv("PATH", slurm.environment["PATH"])
    result = fairbank("prio", "--check", "-j", "10,12")
    assert (result.out, result.code) == ("2 rows computed: no differences\n", 0)
    command = (
        "sacctmgr --noheader --parsable2 show associations cluster=lab"
        " format=account,user,partition,priority"
    )
    assert {command, "scontrol --all --oneliner show job"} <= set(slurm.command_lines)
