"""Tests of `share` and `prio`: the formats of Slurm's own commands, JSON and explanations."""

from __future__ import annotations

import csv
import json
import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from fairbank.cli.framework.host import Local
from fairbank.slurm.rankings import read_shares
from tests.cli.conftest import Run
from tests.cli.output_values import fold
from tests.support.fairshare_recordings import printed, recorded_commands
from tests.support.recorded_slurm import RecordedSlurm, line

NOT_OURS = {"unknown-field", "by-nice", "no-jobs", "no-header-h", "parsable", "jobs"} | {
    "unknown-account",
    "unknown-user",
}
"""Recordings of options that Fairbank spells or explains differently (-h is help, and an unknown
name is refused).
"""


@pytest.fixture
def slurm(tmp_path: Path, clean_env: pytest.MonkeyPatch) -> RecordedSlurm:
    """Return the output of a Slurm with Fair Tree and the time of its recording."""
    result = RecordedSlurm(tmp_path / "slurm")
    result.set_output("sinfo", "slurm-wlm 22.05.8\n")
    result.set_output("sshare", printed("fair-tree", "sshare-everything"))
    result.set_output("sprio", printed("fair-tree", "sprio-everything"))
    result.set_output("scontrol-show-config", printed("fair-tree", "config"))
    result.set_output("squeue", queue((10, "wg_astro", 19), (11, "wg_bio", 19), (12, "wg_bio", 20)))
    clean_env.setenv("PATH", result.environment["PATH"])
    return result


def queue(*jobs: tuple[int, str, int]) -> str:
    """Return the output of squeue for jobs given as number, account and second of submission."""
    return "".join(
        line(job, account, "normal", f"2026-11-21T23:53:{second}") for job, account, second in jobs
    )


@pytest.fixture
def run(fairbank: Run, slurm: RecordedSlurm) -> Run:
    return fairbank


def commands_of_root(program: str) -> list[tuple[str, list[str]]]:
    return [
        (name, words)
        for name, (user, words) in recorded_commands("fair-tree", program).items()
        if user == "root" and name not in NOT_OURS
    ]


@pytest.mark.parametrize(("name", "words"), commands_of_root("sshare"))
def test_share_with_the_options_of_sshare(run: Run, name: str, words: list[str]) -> None:
    if os.geteuid() and not {"-a", "-u"} & set(words):
        words = ["-u", "root", *words]  # recorded as root
    result = run("share", *words)
    assert (result.code, result.err) == (0, "")
    assert result.out == printed("fair-tree", f"sshare-{name}")


@pytest.mark.parametrize(("name", "words"), commands_of_root("sprio"))
def test_prio_with_the_options_of_sprio(run: Run, name: str, words: list[str]) -> None:
    result = run("prio", *("--noheader" if word == "-h" else word for word in words))
    assert (result.code, result.err) == (0, "")
    assert result.out == printed("fair-tree", f"sprio-{name}")


def test_unknown_name_is_refused_with_the_known_ones(run: Run, slurm: RecordedSlurm) -> None:
    slurm.set_output("scontrol-show-partition", "PartitionName=cpu\nPartitionName=idle\n")
    for words, message in (
        (("share", "-A", "wg_bia"), "no account 'wg_bia' that you may see; did you mean wg_bio?"),
        (("share", "-u", "nonsense"), "there is no user 'nonsense' on this host"),
        (("prio", "-u", "nonsense"), "there is no user 'nonsense' on this host"),
        (("prio", "-p", "nonsense"), "there is no partition 'nonsense' that you may see"),
    ):
        result = run(*words)
        assert (result.code, result.out) == (3, "")
        assert message in fold(result.err)
    assert run("prio", "-p", "idle").code == 0


def test_parsable_output_equals_that_of_sshare(run: Run) -> None:
    assert run("share", "-p", "-a").out == printed("fair-tree", "sshare-parsable")


def test_csv_has_the_cells_of_the_table(run: Run) -> None:
    shares = list(csv.reader(run("share", "-a", "-l", "--csv").out.splitlines()))
    assert shares == [
        [cell.lstrip(" ") for cell in line.split("|")]
        for line in run("share", "-a", "-l", "-P").out.splitlines()
    ]
    priorities = list(csv.reader(run("prio", "-l", "--csv").out.splitlines()))
    barred = run("prio", "-o", "|".join(f"%{letter}" for letter in "iruYSABFJPQNT"))
    assert priorities == [line.split("|") for line in barred.out.splitlines()]


def test_commands_that_share_and_prio_run(run: Run, slurm: RecordedSlurm) -> None:
    run("share")
    run("prio")
    assert slurm.command_lines == [
        (
            "sshare --all --partition --noheader --parsable2"
            " --format=Account,Cluster,User,Partition,RawShares,NormShares,RawUsage,NormUsage,"
            "EffectvUsage,FairShare,LevelFS,GrpTRESMins,GrpTRESRaw,ID,TRESRunMins"
        ),
        "scontrol show config",
        "scontrol show config",
        "sinfo --version",
        (
            "sprio --noheader"
            " --format=%i|%r|%c|%u|%Y|%y|%S|%A|%a|%B|%b|%F|%f|%J|%j|%P|%p|%Q|%q|%N|%T|%t"
        ),
        "squeue --all --noheader --states=PENDING --format=%A\x1f%a\x1f%q\x1f%V",
    ]


def test_time_until_reset_is_counted_from_the_stated_time(slurm: RecordedSlurm) -> None:
    """The time until the next reset is counted from the time that the output states."""
    slurm.set_output(
        "scontrol-show-config",
        printed("fair-tree", "config").replace("ResetPeriod = NONE", "ResetPeriod = DAILY"),
    )
    morning = 1_800_000_000
    result, later = (read_shares(None, morning + seconds, Local()) for seconds in (0, 600))
    assert (result.as_of, later.as_of) == (morning, morning + 600)
    assert result.rule.reset_in is not None
    assert later.rule.reset_in == result.rule.reset_in - 600


def test_tree_explains_levels(run: Run) -> None:
    result = run("share", "--tree", "-A", "wg_bio", "-a")
    assert result.out.splitlines() == [
        "ACCOUNT / USER  SHARES   NORM  USAGE   LEVEL  FACTOR  REGIME",
        "wg_bio              30  0.186  0.000  768186          under",
        "  bob               10  0.333  1.000    0.33   0.167  over, 3:1",
        "  carol             20  0.667  0.000  unused   0.250  unused",
    ]
    assert "Usage halves every 7 days." in result.err
    assert run("share", "--tree", "-q").err == ""


def test_share_says_what_decides_where_fair_share_has_no_weight(
    run: Run, slurm: RecordedSlurm
) -> None:
    config = printed("fair-tree", "config").replace("FairShare = 100000", "FairShare = 0")
    slurm.set_output(
        "scontrol-show-config", config.replace("WeightAge       = 1000", "WeightAge = 9000")
    )
    for words in (["--tree"], ["--forecast"], ["--forecast", "--pause", "1week"]):
        text = fold(run("share", *words).err)
        assert "Fair share has no weight here (PriorityWeightFairshare=0)" in text
        assert "By weight these decide: age (9,000), then requested gres/gpu (3,000), then" in text
    assert "has no weight" not in run("prio").err


def test_explanation_of_one_job(run: Run) -> None:
    result = run("prio", "--explain", "-j", "12")
    assert result.code == 0
    assert result.out.splitlines()[:2] == [
        "Job 12 (carol, wg_bio, partition gpu)",
        "priority 29,726, 1st of 2 that wait in gpu",
    ]
    assert result.out.splitlines()[-1] == "No job is ahead of it there."
    assert run("prio", "--explain", "-u", "alice").out.count("Just ahead: ") == 2


def test_explanation_says_why_a_job_does_not_age_and_whose_priorities_count(
    run: Run, slurm: RecordedSlurm
) -> None:
    """bob has two jobs in QOS normal, 11 and 14. With one of a user at once, 14 keeps its age, and
    11 has none until then.
    """
    since = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1)
    full = since + timedelta(days=7)  # PriorityMaxAge
    jobs = printed("fair-tree", "jobs")
    jobs = re.sub("(JobId=11 .*AccrueTime=)[^ ]*", r"\g<1>Unknown", jobs)
    for name in ("Submit", "Eligible", "Accrue"):
        jobs = re.sub(f"(JobId=10 .*{name}Time=)[^ ]*", rf"\g<1>{since:%FT%T}", jobs)
    slurm.set_output("scontrol-show-job", jobs)
    slurm.set_output("sacctmgr-show-qos", "normal|0|||1\nhigh|50|||\n")
    slurm.set_output(
        "sacctmgr-show-associations",
        "root||||0||\nwg_astro|||root|0||\nwg_astro|alice|||20||\nwg_bio|||root|0||\n"
        "wg_bio|bob|||0||\nwg_bio|carol|||50||\n",
    )
    result = run("prio", "--explain", "-j", "11", "-p", "cpu", "--utc")
    assert (result.code, result.out.splitlines()[2:8]) == (
        0,
        [
            "  age                     0   0.000 x 1,000",
            (
                "    does not age: QOS normal lets 1 job of a user age at once"
                " (MaxJobsAccruePerUser), and 1 of bob does; it begins when one of these leaves the"
                " queue"
            ),
            "  association             0   0.000 x 500",
            (
                "    priority 0 of association bob in wg_bio, divided by 50, that of association"
                " carol in wg_bio"
            ),
            "  fair share         16,667   0.167 x 100,000      ########################",
            "  job size               83   0.083 x 1,000",
        ],
    )
    assert "priority 0 of QOS normal, divided by 50, that of QOS high" in result.out
    lines = run("prio", "--explain", "-j", "10", "--utc").out.splitlines()
    assert lines[3] == f"    +6 per hour until {full:%F %T}"
    assert lines[5].strip() == (
        "priority 20 of association alice in wg_astro, divided by 50, that of association carol in"
        " wg_bio"
    )
    assert "priority 16,961, 6th of 7 that wait in cpu" in result.out
    config = printed("fair-tree", "config")
    never = re.sub("(PriorityDecayHalfLife *= ).*", r"\g<1>00:00:00", config)
    slurm.set_output("scontrol-show-config", never)
    result = run("prio", "--explain", "--json", "-p", "cpu,gpu")
    rows = {
        row["job_id"]: row for row in json.loads(result.out)["data"] if row["partition"] == "cpu"
    }
    older, row = rows[10], rows[11]
    assert (row["position"], row["waiting"], row["ahead"]["job_id"]) == (6, 7, 10)
    assert row["ahead"]["priority"] > row["priority"]
    assert row["notes"]["fair_share"]["reset"] == "NONE"
    assert row["notes"]["age"] == {
        "text": (
            "does not age: QOS normal lets 1 job of a user age at once (MaxJobsAccruePerUser), and"
            " 1 of bob does; it begins when one of these leaves the queue"
        ),
        "since": None,
        "full": None,
        "per_hour": None,
        "limits": [
            {
                "setting": "MaxJobsAccruePerUser",
                "owner": "QOS normal",
                "account": None,
                "user": "bob",
                "maximum": 1,
                "jobs": 1,
            }
        ],
    }
    assert row["notes"]["association"] == {
        "text": (
            "priority 0 of association bob in wg_bio, divided by 50, that of association carol in"
            " wg_bio"
        ),
        "owner": "association bob in wg_bio",
        "priority": 0,
        "divided": True,
        "highest_priority": 50,
        "highest_owner": "association carol in wg_bio",
    }
    assert row["notes"]["qos"]["highest_owner"] == "QOS high"
    assert older["notes"]["age"] == {
        "text": f"+6 per hour until {full:%FT%TZ}",
        "since": f"{since:%FT%TZ}",
        "full": f"{full:%FT%TZ}",
        "per_hour": 5.952,
        "limits": [],
    }
    # Slurm 22.05 uses only the first limit of a QOS: bob's own is not looked at.
    slurm.set_output("sacctmgr-show-qos", "normal|0||9|1\nhigh|50|||\n")
    result = run("prio", "--explain", "--json", "-j", "11", "-p", "cpu")
    (limit,) = json.loads(result.out)["data"][0]["notes"]["age"]["limits"]
    assert (limit["setting"], limit["account"], limit["maximum"], limit["jobs"]) == (
        "MaxJobsAccruePerAccount",
        "wg_bio",
        9,
        0,
    )


@pytest.mark.parametrize("form", ["--csv", "--check", "--weights"])
def test_explanation_is_text_or_json(run: Run, form: str) -> None:
    result = run("prio", "--explain", form)
    assert (result.code, result.out) == (2, "")
    assert f"an explanation has no form {form}" in fold(result.err)


@pytest.mark.parametrize("form", [(), ("--json",), ("--csv",), ("--explain", "--json")])
def test_job_that_does_not_wait_is_named_in_every_form(run: Run, form: tuple[str, ...]) -> None:
    result = run("prio", *form, "-j", "10,999")
    assert (result.code, "or not eligible yet: 999." in fold(result.err)) == (3, True)


def test_explanation_without_slurmdbd_says_that_no_age_counts(
    run: Run, slurm: RecordedSlurm
) -> None:
    """sacctmgr does not answer there, and is not asked."""
    config = printed("fair-tree", "config").replace("accounting_storage/slurmdbd", "(null)")
    slurm.set_output("scontrol-show-config", config)
    slurm.set_output("scontrol-show-job", printed("fair-tree", "jobs"))
    result = run("prio", "--explain", "-j", "12")
    assert (result.code, "not known" in result.err) == (0, False)
    assert "    without slurmdbd Slurm counts no age" in result.out.splitlines()


def test_explanation_without_limits_says_what_is_missing(run: Run, slurm: RecordedSlurm) -> None:
    result = run("prio", "--explain", "-j", "12")
    assert (result.code, "per hour" in result.out) == (0, False)
    missing = "Why age, association and QOS count so is not known: scontrol ended with 1"
    assert missing in fold(result.err)
    document = json.loads(run("prio", "--explain", "--json", "-j", "12").out)
    assert (document["data"][0]["notes"], document["warnings"][0][: len(missing)]) == (
        None,
        missing,
    )
    slurm.set_output("scontrol-show-job", printed("fair-tree", "jobs"))
    slurm.set_output("sacctmgr-show-qos", "normal|0|||many\n")
    slurm.set_output("sacctmgr-show-associations", "")
    result = run("prio", "--explain", "-j", "12")
    assert result.code == 8
    assert "! not read: sacctmgr show qos, line 1, MaxJobsAccruePU: 'many'" in fold(result.err)


def test_requeued_job_is_behind_jobs_submitted_while_it_ran(run: Run, slurm: RecordedSlurm) -> None:
    first, *_ = printed("fair-tree", "sprio-everything").splitlines()
    slurm.set_output(
        "sprio", "".join(f"{number}{first.removeprefix('10')}\n" for number in (10, 12))
    )
    slurm.set_output("squeue", queue((10, "wg_astro", 40), (12, "wg_astro", 20)))
    assert (
        run("prio", "--explain", "-j", "12").out.splitlines()[-1] == "No job is ahead of it there."
    )
    last = run("prio", "--explain", "-j", "10").out.splitlines()[-1]
    assert (
        last == "Just ahead: job 12 of alice with 33,631: the same, and it was submitted earlier."
    )


def test_json_factors_are_rounded(run: Run) -> None:
    rows = json.loads(run("prio", "--json", "-j", "11", "-p", "cpu").out)["data"]
    assert [(row["factors"]["fair_share"], row["factors"]["job_size"]) for row in rows] == [
        (16666.67, 82.8947)
    ]


def test_why_without_own_pending_jobs_says_so(run: Run, slurm: RecordedSlurm) -> None:
    slurm.set_output(
        "sprio",
        "".join(
            f"{line}\n"
            for line in printed("fair-tree", "sprio-everything").splitlines()
            if "|root " not in line
        ),
    )
    result = run("prio", "--explain")
    assert (result.code, result.out) == (0, "")
    assert re.fullmatch(
        r"None of your jobs \(\S+\) waits. Name a job with -j JOBID, or users with -u USER.",
        fold(result.err),
    )
    assert fold(run("prio", "--explain", "-u", "nobody").err) == "No such job waits."


def test_job_is_explained_once_in_each_partition(run: Run, slurm: RecordedSlurm) -> None:
    lines = printed("fair-tree", "sprio-everything").splitlines(keepends=True)
    slurm.set_output(
        "sprio", "".join([*lines, *(line for line in lines if line.startswith("12 "))])
    )
    result = run("prio", "--explain", "-j", "12")
    assert result.out.count("Job 12 ") == 1
    assert "1st of 2 that wait in gpu" in result.out


def test_json_of_share_and_prio_has_a_row_for_each_line(run: Run) -> None:
    data = json.loads(run("share", "--json", "-a").out)
    assert (data["schema"], data["cluster"], len(data["data"])) == ("fairbank.share/1", "lab", 21)
    data = json.loads(run("prio", "--json", "-p", "gpu").out)
    assert (data["schema"], [row["job_id"] for row in data["data"]]) == (
        "fairbank.prio/1",
        [11, 12],
    )
    assert data["data"][0]["account"] == "wg_bio"
    assert run("share", "--helpformat").out.split()[0] == "Account"


def test_columns_of_tree_and_forecast_are_explained(run: Run) -> None:
    for words in (("--tree",), ("--forecast",), ("--forecast", "--pause", "3weeks")):
        shown = run("share", *words, "-a").out.splitlines()[0].split()
        assert set(shown) <= set(run("share", *words, "--helpformat").out.split()), words


def test_newer_slurm_prints_account_and_qos(run: Run, slurm: RecordedSlurm) -> None:
    """Each row has its own QOS: for a job that requested several, squeue prints all of them in one
    field.
    """
    lines = [
        line
        for line in printed("fair-tree", "sprio-everything").splitlines()
        if line.startswith(("10", "12"))
    ]
    slurm.set_output("sinfo", "slurm 23.02.7\n")
    slurm.set_output(
        "sprio",
        "".join(
            f"{line}|wg_astro|{qos}\n"
            for line, qos in zip([*lines, lines[1]], ("normal", "high", "low"), strict=True)
        ),
    )
    slurm.set_output("squeue", "")
    assert [row["qos"] for row in json.loads(run("prio", "--json").out)["data"]] == [
        "normal",
        "high",
        "low",
    ]
    assert "|%T|%t|%o|%n" in "".join(slurm.command_lines)
    head, first, *_ = run("prio", "-l").out.splitlines()
    assert re.findall(r"\S+", head)[2:4] == ["USER", "ACCOUNT"]
    assert "QOSNAME" in head
    assert re.findall(r"\S+", first)[2:4] == ["alice", "wg_astro"]


def test_job_that_is_not_pending_is_reported(run: Run, slurm: RecordedSlurm) -> None:
    result = run("prio", "-j", "99,12")
    assert (result.code, result.err) == (3, "Not waiting, or held, or not eligible yet: 99.\n")
    slurm.set_output("sprio", "Unable to find jobs matching user/id(s) specified\n")
    result = run("prio")
    assert (result.code, result.err) == (0, "No such job waits.\n")


def test_saved_output_of_slurm_is_read(run: Run, slurm: RecordedSlurm, tmp_path: Path) -> None:
    for name in ("sshare", "sprio"):
        (tmp_path / f"{name}.txt").write_text(printed("classic", f"{name}-everything"))
    (tmp_path / "config.txt").write_text(printed("classic", "config"))
    assert run("share", "-l", "-a", "--from", tmp_path).out == printed("classic", "sshare-long-all")
    assert run("prio", "--from", tmp_path).out == printed("classic", "sprio-default")
    assert json.loads(run("share", "--json", "--from", tmp_path).out)["as_of"].startswith(
        "2026-11-21T23:5"
    )
    assert slurm.command_lines == []
    (tmp_path / "sshare.txt").unlink()
    result = run("share", "--from", tmp_path)
    assert result.code == 3
    assert "sshare.txt" in result.err


def test_missing_squeue_output_is_reported(run: Run, tmp_path: Path) -> None:
    (tmp_path / "sprio.txt").write_text(printed("fair-tree", "sprio-everything"))
    (tmp_path / "config.txt").write_text(printed("fair-tree", "config"))
    blank = (
        "Account and QOS of 9 jobs are not known: squeue tells them, or with --from its file"
        " squeue.txt."
    )
    assert run("prio", "--from", tmp_path).err == "", "the default columns need no account"
    for form in (("--json",), ("-o", "%i %o %n")):
        assert fold(run("prio", "--from", tmp_path, *form).err) == blank
    output = fold(run("prio", "--from", tmp_path, "--explain", "-j", "10").err)
    assert "Account and QOS of 1 job are not known" in output
    assert "Of equal priorities the lower number stands first here" in output
    (tmp_path / "squeue.txt").write_text(queue(*((job, "wg_bio", 19) for job in range(10, 21))))
    assert run("prio", "--from", tmp_path, "--json").err == ""


def test_running_jobs_are_not_counted_as_pending(run: Run, slurm: RecordedSlurm) -> None:
    """With CALCULATE_RUNNING sprio lists running jobs too; squeue is asked for pending jobs."""
    assert "priority 29,726, 1st of 2 that wait in gpu" in run("prio", "--explain", "-j", "12").out
    config = re.sub(
        r"(?m)^PriorityFlags .*$",
        "PriorityFlags = CALCULATE_RUNNING",
        printed("fair-tree", "config"),
    )
    slurm.set_output("scontrol-show-config", config)
    slurm.set_output("squeue", queue((12, "wg_bio", 20)))
    assert run("prio", "-o", "%i").out.split()[1:] == [
        "10",
        "11",
        "11",
        "12",
        "13",
        "14",
        "15",
        "16",
        "17",
        "18",
    ], "as sprio has it"
    assert "priority 29,726, 1st of 1 that wait in gpu" in run("prio", "--explain", "-j", "12").out
    assert "priority 17,272, and it runs\n" in run("prio", "--explain", "-j", "11").out
    assert {
        row["job_id"] for row in json.loads(run("prio", "--json").out)["data"] if not row["runs"]
    } == {12}
    row, *_ = json.loads(run("prio", "--explain", "--json", "-j", "11").out)["data"]
    assert (row["runs"], row["position"], row["ahead"]) == (True, None, None)
    slurm.set_output("squeue", "")
    assert "and it runs" in run("prio", "--explain", "-j", "12").out


def test_unreadable_line_is_reported_and_the_others_are_shown(
    run: Run, slurm: RecordedSlurm
) -> None:
    slurm.set_output(
        "sprio", printed("fair-tree", "sprio-everything").replace("|33631 ", "|33.631 ")
    )
    result = run("prio", "--noheader")
    assert result.out == "".join(
        printed("fair-tree", "sprio-no-header").splitlines(keepends=True)[1:]
    )
    assert result.err.startswith("! not read: sprio, line 1, PRIORITY:")
    assert (
        result.err.splitlines()[-1]
        == "These lines are left out. To see what Slurm has there: sprio -l"
    )
    assert result.code == 8


def test_priority_basic_is_refused(run: Run, slurm: RecordedSlurm) -> None:
    slurm.set_output(
        "scontrol-show-config",
        printed("fair-tree", "config").replace("priority/multifactor", "priority/basic"),
    )
    result = run("prio")
    assert result.code == 2
    assert "PriorityType" in result.err


def test_unreachable_slurm_exits_with_6(run: Run, slurm: RecordedSlurm) -> None:
    slurm.remove_output("sshare")
    assert run("share").code == 6


@pytest.mark.parametrize(
    "words",
    [("share", "-o", "nonsense"), ("prio", "-o", "%z"), ("prio", "-S", "z"), ("prio", "-j", "x")],
)
def test_usage_errors_are_reported_without_running_slurm(
    run: Run, slurm: RecordedSlurm, words: tuple[str, ...]
) -> None:
    result = run(*words)
    assert result.code == 2
    assert "try: " in result.err or words[-1] in result.err
