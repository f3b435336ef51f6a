"""Slurm commands run in UTC under a time limit, and each error has a remedy."""

from __future__ import annotations

import json
import os
import pwd
from pathlib import Path

import pytest

from fairbank.core.errors import InvalidInput, Unavailable
from fairbank.slurm.commands import SlurmCommands
from tests.slurm.reconcile.jobs import a_job, sacct_json, sacct_row
from tests.support.recorded_slurm import GOLDEN, RecordedSlurm

ME = pwd.getpwuid(os.geteuid()).pw_name


@pytest.fixture
def recorded(tmp_path: Path) -> RecordedSlurm:
    return RecordedSlurm.of_the_lab(tmp_path / "slurm")


def slurm_of(
    recorded: RecordedSlurm, timeout_seconds: float = 30, uid: int | None = None, **environment: str
) -> SlurmCommands:
    return SlurmCommands(
        {**os.environ, **environment, **recorded.environment}, timeout_seconds, uid=uid
    )


def test_columns_are_requested_from_2205(recorded: RecordedSlurm) -> None:
    slurm = slurm_of(recorded)
    assert len(slurm.jobs(1_795_270_000, 1_795_280_000).rows) == 37
    assert len(slurm.queue().rows) == 38
    commands = recorded.command_lines
    assert commands[0] == "sinfo --version"
    assert commands[1].startswith(
        "sacct --allusers --allocations --duplicates --starttime=2026-11-21T14:06:40"
        " --endtime=2026-11-21T16:53:20 --noheader --parsable2"
    )
    assert not [line for line in commands if "--json" in line]


def test_json_is_requested_from_newer_releases(recorded: RecordedSlurm) -> None:
    recorded.set_output("sinfo", "slurm 24.11.5\n")
    recorded.set_output("sacct.json", (GOLDEN / "slurm-24.11" / "sacct-all.json").read_text())
    slurm = slurm_of(recorded)
    assert len(slurm.jobs(0, 1).rows) == 37
    assert [line for line in recorded.command_lines if "--json" in line] == [
        (
            "sacct --allusers --allocations --duplicates --starttime=1970-01-01T00:00:00"
            " --endtime=1970-01-01T00:00:01 --json"
        )
    ]


def test_columns_are_requested_without_json_support(
    recorded: RecordedSlurm, tmp_path: Path
) -> None:
    recorded.set_output("sinfo", "slurm 24.11.5\n")
    program = tmp_path / "slurm" / "programs" / "sacct"
    unable = (
        '[ "${*#*--json}" = "$*" ] ||'
        ' { echo "sacct: error: JSON support is not built" >&2; exit 1; }'
    )
    program.write_text(program.read_text().replace("#!/bin/sh\n", f"#!/bin/sh\n{unable}\n"))
    assert len(slurm_of(recorded).jobs(0, 1).rows) == 37


def test_owner_is_looked_up_by_name(recorded: RecordedSlurm) -> None:
    recorded.set_output("sinfo", "slurm 24.11.5\n")
    text = (GOLDEN / "slurm-24.11" / "sacct-all.json").read_text()
    recorded.set_output("sacct.json", text.replace('"user": "bob"', f'"user": "{ME}"'))
    owners = {job.user: job.owner for job in slurm_of(recorded).jobs(0, 1).rows}
    assert owners[ME] == os.geteuid()
    assert owners["alice"] is None or isinstance(owners["alice"], int)


def test_owner_whom_no_host_knows_any_more_is_read_from_columns(recorded: RecordedSlurm) -> None:
    """JSON has names only."""
    job = a_job(7, user="gone", owner=70_001, tres="cpu=4,node=1")
    recorded.set_output("sinfo", "slurm 24.11.5\n")
    recorded.set_output("sacct.json", json.dumps({"jobs": [sacct_json(job)]}))
    recorded.set_output("sacct-jobs", sacct_row(job))
    assert slurm_of(recorded).jobs(0, 1).rows == (job,)


def test_user_format_variables_are_ignored(recorded: RecordedSlurm, tmp_path: Path) -> None:
    program = tmp_path / "slurm" / "programs" / "sinfo"
    program.write_text('#!/bin/sh\necho "[$SACCT_FORMAT$SLURM_TIME_FORMAT$(date +%Z)]"\n')
    with pytest.raises(
        InvalidInput, match=r"\[UTC\]"
    ):  # which is no version, and tells what the command was given
        _ = slurm_of(
            recorded, SACCT_FORMAT="jobid", SLURM_TIME_FORMAT="relative", TZ="America/New_York"
        ).version


def test_hanging_command_is_reported(recorded: RecordedSlurm) -> None:
    recorded.set_output("hangs", "")
    with pytest.raises(Unavailable, match=r"sinfo did not answer within 0\.2 s"):
        _ = slurm_of(recorded, 0.2).version


def test_failing_command_is_reported(recorded: RecordedSlurm) -> None:
    recorded.remove_output("squeue")
    with pytest.raises(
        Unavailable, match="squeue ended with 1: squeue: error: nothing is recorded"
    ):
        slurm_of(recorded).queue()


def test_missing_slurm_is_reported(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="cannot run sinfo: No such file") as error:
        _ = SlurmCommands({"PATH": str(tmp_path)}).version
    assert error.value.remedy is not None
    assert "PATH" in error.value.remedy


def test_wrong_cluster_is_reported(recorded: RecordedSlurm) -> None:
    assert slurm_of(recorded).check_cluster("lab") == "lab"
    with pytest.raises(InvalidInput, match="belongs to cluster lab, not darwin"):
        slurm_of(recorded).check_cluster("darwin")


@pytest.mark.parametrize("slurm_user", ["root(0)", "slurm(64030)", "(null)", f"me({os.geteuid()})"])
def test_visibility_of_all_jobs(recorded: RecordedSlurm, slurm_user: str) -> None:
    recorded.set_output("scontrol-show-config", f"SlurmUser               = {slurm_user}\n")
    assert slurm_of(recorded).can_see_all_jobs == (
        os.geteuid() == 0 or str(os.geteuid()) in slurm_user
    )
    assert [uid for uid in (0, 61_009, 64_030) if slurm_of(recorded, uid=uid).can_see_all_jobs] == (
        [0, 64_030] if "slurm" in slurm_user else [0]
    )


def test_change_without_effect_is_accepted(recorded: RecordedSlurm) -> None:
    recorded.set_output("refuses", " Nothing modified\n")
    slurm_of(recorded).change_accounting(("modify", "account"))
    recorded.set_output("refuses", " Access/permission denied\n")
    with pytest.raises(Unavailable, match="Access/permission denied"):
        slurm_of(recorded).change_accounting(("modify", "account"))


def test_undecodable_text_is_reported_by_its_line(recorded: RecordedSlurm, tmp_path: Path) -> None:
    row = sacct_row(a_job(1)).encode()
    (tmp_path / "slurm" / "answers" / "sacct").write_bytes(row.replace(b"chem", b"ch\xffm") + row)
    jobs = slurm_of(recorded).jobs(0, 1)
    gaps = [[(gap.line, gap.field) for gap in job.price_gaps] for job in jobs.rows]
    assert (gaps, jobs.rows[0].account) == ([[(1, "Account")], []], "")
