"""Commands at a bank with two clusters: both have a job 812301, only darwin has a job 812222."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairbank.cli import main
from fairbank.cli.commands.bank import sproject
from fairbank.core.time import parse_instant
from fairbank.rest.client import Client, parse_address
from tests.cli.conftest import CommandResult, Run, runner
from tests.cli.output_values import fold
from tests.cli.served_site import serve_site
from tests.cli.site import AYLA, CPU, JORGE
from tests.cli.test_why_at_slurm import JOBS, renamed_queue

STARTED = parse_instant("2026-11-21T08:00:00Z")
HOUR = 3_600


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Serve a site with the clusters darwin and wolf. On wolf job 812301 ran for an hour: 8 SU."""
    with serve_site(SITE_CLUSTERS="wolf") as bank:
        client = Client(parse_address(bank.unix))
        job = {
            "cluster": "wolf",
            "job_id": 812_301,
            "submitted": STARTED,
            "start": STARTED,
            "owner_uid": AYLA,
            "account": "chem_qmc",
            "partition": "idle-std",
            "tres": "cpu=8",
        }
        client.post("/job", {**job, "do": "hold", "time_limit": 2 * HOUR})
        ended = {"end": STARTED + HOUR, "elapsed": HOUR, "state": "COMPLETED"}
        client.post("/job", {**job, **ended, "do": "complete"})
        yield bank.unix


@pytest.fixture
def two_clusters(
    address: str, clean_env: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """Run commands against the bank, where Slurm does not answer."""
    clean_env.setenv("FAIRBANK_SERVER", address)
    clean_env.setenv("PATH", "/nonexistent")
    return runner(main.run, capsys)


def failure(result: CommandResult, code: int) -> str:
    """Return the message of a command that failed, as one line."""
    assert (result.code, result.out) == (code, ""), result
    return fold(result.err)


def test_why_answers_without_a_cluster_where_one_has_the_job(two_clusters: Run) -> None:
    result = two_clusters("why", 812_222)
    assert "(120 SU, of which 120 SU were refunded)" in fold(result.out), result
    assert "cluster darwin" in result.out


def test_why_names_the_option_where_two_clusters_have_the_job(two_clusters: Run) -> None:
    message = failure(two_clusters("why", 812_301), 2)
    assert "several clusters have a job 812301: darwin, wolf" in message
    assert "name its cluster with -M: darwin, wolf" in message


@pytest.mark.parametrize(("cluster", "charged"), [("darwin", "301 SU"), ("wolf", "8 SU")])
def test_why_takes_a_cluster(two_clusters: Run, cluster: str, charged: str) -> None:
    result = two_clusters("why", 812_301, "-M", cluster)
    assert f"{charged} were charged to allocation 1" in fold(result.out), result
    (row,) = json.loads(two_clusters("why", 812_301, "-M", cluster, "--json").out)["data"]
    assert row["run"]["cluster"] == cluster


def test_why_never_takes_a_job_of_slurm_here_for_that_of_another_cluster(
    two_clusters: Run, tmp_path: Path
) -> None:
    """The queue is that of darwin; the job `second` waits there."""
    queue = renamed_queue(tmp_path / "queue")
    ended = two_clusters("why", 812_301, "-M", "wolf", "--from", queue)
    assert "8 SU were charged to allocation 1" in fold(ended.out), ended
    waiting = two_clusters("why", JOBS["second"], "-M", "wolf", "--from", queue)
    message = failure(waiting, 6)
    assert f"the bank knows no job {JOBS['second']} that you may see" in message
    assert "the queue here is that of cluster darwin" in message
    assert "run this on a host of cluster wolf" in message


@pytest.mark.parametrize("command", ["jobs -a -j 812301", "eff 812301"])
def test_jobs_name_their_cluster(two_clusters: Run, command: str) -> None:
    """The caption names it if -M does."""
    lines = two_clusters(*command.split()).out.splitlines()
    assert lines[2].split()[:2] == ["JOBID", "CLUSTER"]
    assert {line.split()[1] for line in lines[3:5]} == {"darwin", "wolf"}
    of_one = two_clusters(*command.split(), "-M", "wolf").out
    assert "CLUSTER" not in of_one
    assert "cluster wolf" in of_one


def test_one_job_names_its_cluster_where_the_bank_has_several(two_clusters: Run) -> None:
    assert "CLUSTER" in two_clusters("jobs", "-j", 812_222).out


def test_refused_jobs_name_their_cluster(two_clusters: Run) -> None:
    header, row = two_clusters("jobs", "--refused", "-a").out.splitlines()[2:4]
    assert header.split()[:3] == ["TIME", "JOBID", "CLUSTER"]
    assert header.endswith("REASON")
    assert "812350 darwin" in row


def test_refused_jobs_of_the_overview_name_their_cluster(two_clusters: Run) -> None:
    lines = two_clusters("--as", JORGE).out.splitlines()
    (place,) = (place for place, line in enumerate(lines) if line.startswith("TIME"))
    assert lines[place].split()[:3] == ["TIME", "JOBID", "CLUSTER"]
    assert "812350 darwin" in lines[place + 1]


def test_remedies_of_refused_jobs_name_their_cluster(two_clusters: Run) -> None:
    refused = ("jobs", "--refused", "-a")
    assert "Job darwin/812350: not enough credit" in two_clusters(*refused).err
    assert "Job 812350: not enough credit" in two_clusters(*refused, "-M", "darwin").err


@pytest.mark.parametrize(("verb", "job"), [("jobs", "812301"), ("failures", "812350")])
def test_jobs_and_failures_of_sproject_name_their_cluster(
    address: str,
    clean_env: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    verb: str,
    job: str,
) -> None:
    clean_env.setenv("FAIRBANK_SERVER", address)
    hadm = runner(sproject.run, capsys)
    shown = hadm(verb).out
    clusters = {line.split(job)[1].split()[0] for line in shown.splitlines() if job in line}
    assert clusters == {"darwin", "wolf"} if verb == "jobs" else {"darwin"}
    (header,) = hadm(verb, "--detail", "-P").out.splitlines()[:1]
    assert [header.split("|").count(name) for name in ("CLUSTER", "RESOURCE")] == [1, 1]


def test_sentences_name_the_cluster_of_each_job(two_clusters: Run) -> None:
    """The processor time of 702001 is not known on darwin, nor that of 812301 on wolf."""
    for clusters in ((), ("-M", "darwin,wolf")):
        note = fold(two_clusters("eff", "812301,702001", *clusters).err)
        assert "Used processor time not known: wolf/812301, darwin/702001." in note
    assert "not known: 702001." in fold(two_clusters("eff", "702001", "-M", "darwin").err)


def test_statement_names_the_cluster_of_each_job(two_clusters: Run) -> None:
    command = ("statement", CPU, "-S", "2026-11-21")
    shown = two_clusters(*command).out
    assert "wolf/812301" in shown
    assert "darwin/812301" in shown
    script = two_clusters(*command, "-P", "-n", "-o", "KIND,JOB/REF,CLUSTER").out
    assert "charge|812301|wolf" in script.splitlines()
    (header, *_) = two_clusters(*command, "--csv").out.splitlines()
    assert {"JOB/REF", "CLUSTER"} <= set(header.split(","))


def test_refund_asks_for_the_cluster_where_two_have_a_charged_job(two_clusters: Run) -> None:
    refund = ("refund", 812_301, "--reason", "node failed")
    message = failure(two_clusters(*refund), 2)
    assert "several clusters have a job 812301: darwin, wolf" in message
    assert "name its cluster with -M: darwin, wolf" in message
    for cluster, amount in (("wolf", 8), ("darwin", 301)):
        answer = fold(two_clusters(*refund, "-M", cluster).out)
        assert f"refund of {amount} SU of job 812301 of cluster {cluster} to" in answer
    assert "several clusters have a job 812301" in failure(two_clusters(*refund), 2)


@pytest.mark.parametrize(
    ("command", "named"),
    [
        (("jobs", "-a", "-j", "wolf/812301"), ("jobs", "-a", "-j", "812301", "-M", "wolf")),
        (
            ("jobs", "--refused", "-a", "-j", "darwin/812350,darwin/812301"),
            ("jobs", "--refused", "-a", "-j", "812350,812301", "-M", "darwin"),
        ),
        (("eff", "darwin/812301,darwin/702001"), ("eff", "812301,702001", "-M", "darwin")),
        (("eff", "darwin/812301", "darwin/702001"), ("eff", "812301,702001", "-M", "darwin")),
        (("why", "wolf/812301"), ("why", "812301", "-M", "wolf")),
        (("why", "wolf/812301", "-M", "wolf"), ("why", "812301", "-M", "wolf")),
        (
            ("refund", "wolf/812301", "1", "--reason", "slow", "--dry-run"),
            ("refund", "812301", "1", "--reason", "slow", "--dry-run", "-M", "wolf"),
        ),
        (
            ("release", "wolf/812301", "--reason", "lost", "--dry-run"),
            ("release", "812301", "--reason", "lost", "--dry-run", "-M", "wolf"),
        ),
    ],
)
def test_job_is_named_as_the_bank_prints_it(
    two_clusters: Run, command: tuple[str, ...], named: tuple[str, ...]
) -> None:
    assert two_clusters(*command) == two_clusters(*named)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("jobs", "-j", "wolf/812301,darwin/702001"), "are not jobs of one cluster"),
        (("jobs", "-j", "wolf/812301,702001"), "are not jobs of one cluster"),
        (("eff", "wolf/812301", "702001"), "jobs of several clusters"),
        (("eff", "wolf/812301", "-M", "darwin,wolf"), "jobs of several clusters"),
        (("why", "wolf/812301", "-M", "darwin"), "jobs of several clusters"),
        (("jobs", "-j", "wolf/x"), "'x' is not a whole number from 1 on"),
        (("refund", "/812301", "--reason", "slow"), "only printable text"),
    ],
)
def test_jobs_of_several_clusters_are_refused(
    two_clusters: Run, words: tuple[str, ...], text: str
) -> None:
    assert text in failure(two_clusters(*words), 2)


def test_partition_of_two_clusters_is_listed_once(two_clusters: Run) -> None:
    unknown = failure(two_clusters("jobs", "-a", "--partition", "nope"), 3)
    assert unknown.count("gpu-v100") == 1
