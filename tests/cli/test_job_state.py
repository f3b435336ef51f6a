"""`fairbank why` for jobs that do not wait: running, ended with their cost, or refused by the bank.
The queue is recorded, the bank is real.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from fairbank.cli.framework.host import exit_text
from fairbank.core.time import parse_instant
from fairbank.rest.client import Client, Refused, parse_address
from tests.cli.conftest import Run
from tests.cli.output_values import output_of
from tests.cli.served_site import Bank
from tests.cli.site import AYLA, JORGE
from tests.cli.test_why_at_slurm import QUEUE, renamed_queue

REFUSED = 900_101


def why(fairbank: Run, job: object, folder: Path) -> tuple[str, dict[str, Any]]:
    """Return the text as one line, and the data."""
    command = ("why", job, "--from", folder, "--utc")
    text, document = fairbank(*command), fairbank(*command, "--json")
    assert (text.code, document.code) == (0, 0), text.err
    return " ".join(text.out.split()), json.loads(document.out)["data"][0]


@pytest.fixture
def queue(tmp_path: Path) -> Path:
    """Return a recorded queue of the bank's cluster."""
    return renamed_queue(tmp_path / "queue")


def test_ended_job_has_its_cost(changing: Run, queue: Path) -> None:
    """It ran from 02:14 to 07:40, and 301 of the 512 SU that were held were charged."""
    text, data = why(changing, 812_301, queue)
    assert "ended at 2026-11-21 07:40:00 after 05:26:00: COMPLETED, exit code 0." in text
    assert text.endswith("Credit 301 SU were charged to allocation 1 (cpu) of chem_qmc")
    assert (data["state"], data["run"]["charged"], data["refusal"]) == ("ended", 301 * 60, None)


def test_ended_task_of_an_array_has_its_cost(changing: Run, queue: Path) -> None:
    """slurmctld still shows the task, with the number that the bank has."""
    jobs = queue / "jobs.txt"
    line = next(line for line in jobs.read_text().splitlines() if line.startswith("JobId=1 "))
    task = "JobId=812301 ArrayJobId=812299 ArrayTaskId=7 "
    ended = line.replace("JobId=1 ", task).replace("JobState=RUNNING", "JobState=COMPLETED")
    jobs.write_text(f"{jobs.read_text().rstrip()}\n{ended}\n")
    text, data = why(changing, "812299_7", queue)
    assert "Job 812299_7 of 61001 ended at 2026-11-21 07:40:00" in text
    assert (data["job"], data["run"]["job_id"]) == ("812299_7", 812_301)


def test_job_out_of_memory_is_explained_in_words(
    changing: Run, queue: Path, tmp_path: Path
) -> None:
    """Slurm's exit code of it, 0:125, is no signal."""
    jobs = tmp_path / "jobs.csv"
    jobs.write_text(
        "job_id,user,account,partition,start,elapsed,cpus,memory,state\n"
        f"101,{AYLA},chem_qmc,idle-std,2026-11-20T08:00Z,01:00:00,4,16G,OUT_OF_MEMORY\n"
    )
    output_of(changing("import", "csv", str(jobs), "--yes"))
    text, _ = why(changing, 101, queue)
    assert (
        "after 01:00:00: OUT_OF_MEMORY, a process used more memory than the job had (16G);"
        " request more with --mem."
    ) in text


@pytest.mark.parametrize(
    ("code", "signal", "text"),
    [
        (3, 0, "exit code 3"),
        (0, 9, "signal SIGKILL"),
        (0, 53, "exit code 0:53"),
        (0, 125, "exit code 0:125"),
    ],
)
def test_number_that_is_no_signal_is_shown_as_slurm_writes_it(
    code: int, signal: int, text: str
) -> None:
    assert exit_text(code, signal) == text


def test_refund_of_an_ended_job_is_shown(changing: Run, queue: Path) -> None:
    text, _ = why(changing, 812_222, queue)
    assert "after 05:00:00: NODE_FAIL" in text
    payer = "allocation 1 (cpu) of chem_qmc"
    assert text.endswith(f"0 SU were charged to {payer} (120 SU, of which 120 SU were refunded)")


def test_cost_of_a_job_is_the_same_in_each_command_after_a_partial_refund(
    changing: Run, queue: Path
) -> None:
    """700001 cost 9,000 SU. After a refund of 5 SU they are 8,995 everywhere."""
    refund = ("refund", 700_001, 5, "--reason", "a node was slow", "--yes")
    assert changing(*refund).code == 0
    text, data = why(changing, 700_001, queue)
    assert "Credit 8,995 SU were charged to" in text
    assert text.endswith("(9,000 SU, of which 5 SU were refunded)")
    parts = [data["run"][name] for name in ("cost", "charged", "refunded")]
    assert parts == [8_995 * 60, 9_000 * 60, 5 * 60]
    for command in (("jobs", "-j", 700_001), ("eff", 700_001)):
        assert changing(*command, "-n", "-P", "-o", "SU").out == "8995\n"
        (row,) = json.loads(changing(*command, "--json").out)["data"]
        assert row["cost"] == 8_995 * 60


def test_running_job_has_its_hold(changing: Run, queue: Path) -> None:
    text, data = why(changing, 812_344, queue)
    assert (
        "has been running since 2026-11-21 11:55:00, according to the bank; it ends by 2026-11"
        in text
    )
    payer = "allocation 1 (cpu) of chem_qmc"
    hold = f"Credit 384 SU of {payer} are held; what it does not use comes back"
    assert text.endswith(hold)
    assert (data["state"], data["slurm"]) == ("running", None)
    jobs = queue / "jobs.txt"
    jobs.write_text(jobs.read_text().replace("JobId=1 ", "JobId=812344 "))
    text, data = why(changing, 812_344, queue)
    assert text.startswith("As of 2026-11-22 18:01:17 +00:00 bank fairbank cluster darwin")
    assert "has been running since 2026-11-22 18:01:15 on c[01-03]" in text
    assert text.endswith(hold)
    assert data["slurm"]["nodes"] == "c[01-03]"


def test_suspended_job_has_what_is_left_of_its_time_limit(changing: Run, queue: Path) -> None:
    jobs = queue / "jobs.txt"
    lines = jobs.read_text().splitlines()
    (place,) = [place for place, line in enumerate(lines) if line.startswith("JobId=1 ")]
    line = lines[place].replace("JobState=RUNNING", "JobState=SUSPENDED")
    line = re.sub(r" RunTime=\S+ TimeLimit=\S+", " RunTime=00:10:00 TimeLimit=02:00:00", line)
    lines[place] = line
    jobs.write_text("\n".join(lines) + "\n")
    text, _ = why(changing, 1, queue)
    assert "is suspended, started at" in text
    assert "; its time limit does not run meanwhile: 01:50:00 of it are left." in text
    assert "at the latest" not in text


def test_latest_end_is_shown_as_far_as_the_bank_knows_it(
    changing: Run, own_bank: Bank, queue: Path
) -> None:
    """The limit of the second job has passed; the third, HADM's, has none, and 31 days for its
    report. It is 12:30:12 in the bank.
    """
    client = Client(parse_address(own_bank.unix))
    hold = {
        "do": "hold",
        "cluster": "darwin",
        "submitted": parse_instant("2026-11-21T08:00:00Z"),
        "owner_uid": JORGE,
        "account": "chem_qmc",
        "resource": "cpu",
        "amount": 60,
        "start": parse_instant("2026-11-21T08:00:00Z"),
    }
    client.post("/job", {**hold, "job_id": 900_111, "time_limit": 86_400})
    client.post("/job", {**hold, "job_id": 900_112, "time_limit": 3_600})
    fields = ("cluster", "owner_uid", "resource", "amount")
    client.post(
        "/job", {name: hold[name] for name in fields} | {"job_id": 900_113, "project": "chem_qmc"}
    )
    first, second, third = (why(changing, job, queue)[0] for job in (900_111, 900_112, 900_113))
    assert "; it ends by 2026-11-22 08:00:00 at the latest, in 19 h. Credit" in first
    assert (
        "; its time limit ended at 2026-11-21 09:00:00; without a report of its end its hold lapses"
        " at 2026-11-22 09:00:00. Credit"
    ) in second
    assert (
        "according to the bank; without a report of its end its hold lapses at 2026-12-22" in third
    )


def test_refused_job_has_the_refusal_and_its_remedies(
    changing: Run, own_bank: Bank, queue: Path
) -> None:
    """chem_qmc has 262 GPU-SU in allocation 2; the job asks for a million."""
    with pytest.raises(Refused):
        Client(parse_address(own_bank.unix)).post(
            "/job",
            {
                "do": "hold",
                "cluster": "darwin",
                "job_id": REFUSED,
                "submitted": parse_instant("2026-11-21T12:00:00Z"),
                "owner_uid": JORGE,
                "account": "chem_qmc",
                "partition": "gpu-v100",
                "start": parse_instant("2026-11-21T12:20:00Z"),
                "time_limit": 3600,
                "amount": 60_000_000,
            },
        )
    text, data = why(changing, REFUSED, queue)
    assert text.startswith(
        "As of 2026-11-21 12:30:12 +00:00 bank fairbank cluster darwin"
        f" The bank refused job {REFUSED} (resource gpu) at 2026-11-21 12:30:12: "
    )
    assert "ends by 2026-11-21 21:00:00 at the latest" in text
    refusal = data["refusal"]
    assert (data["state"], data["run"], refusal["requested"]) == ("refused", None, 60_000_000)
    assert f"Remedy {refusal['remedies'][0]}" in text


def test_job_that_was_refused_first_and_charged_later_has_ended(
    changing: Run, own_bank: Bank, queue: Path
) -> None:
    """The hold of 300 GPU-SU is refused: 262 are left. After a grant it is reported again."""
    client = Client(parse_address(own_bank.unix))
    job = {
        "cluster": "darwin",
        "job_id": 903,
        "submitted": parse_instant("2026-11-21T10:00:00Z"),
        "owner_uid": JORGE,
        "account": "chem_qmc",
        "partition": "gpu-v100",
        "start": parse_instant("2026-11-21T10:20:00Z"),
        "amount": 300 * 60,
    }
    ended = {"end": parse_instant("2026-11-21T11:20:00Z"), "elapsed": 3600, "state": "COMPLETED"}
    with pytest.raises(Refused):
        client.post("/job", {**job, "do": "hold", "time_limit": 3600})
    assert why(changing, 903, queue)[1]["state"] == "refused"
    assert changing("deposit", 2, 100, "--reason", "more", "--yes").code == 0
    client.post("/job", {**job, **ended, "do": "complete"})
    text, data = why(changing, 903, queue)
    assert (data["state"], data["refusal"], data["run"]["charged"]) == ("ended", None, 300 * 60)
    assert "Remedy" not in text


def test_job_refused_by_a_freeze_is_to_be_submitted_again_after_the_thaw(
    changing: Run, own_bank: Bank, queue: Path
) -> None:
    report = {
        "do": "hold",
        "cluster": "darwin",
        "job_id": 904,
        "submitted": parse_instant("2026-11-21T12:00:00Z"),
        "owner_uid": JORGE,
        "account": "chem_qmc",
        "partition": "gpu-v100",
        "start": parse_instant("2026-11-21T12:20:00Z"),
        "time_limit": 3600,
        "amount": 60,
    }
    assert changing("alloc", "freeze", 2, "--reason", "audit").code == 0
    with pytest.raises(Refused):
        Client(parse_address(own_bank.unix)).post("/job", report)
    thaw = "have it thawed, by staff: fairbank alloc thaw 2 --reason '...'"
    assert thaw in why(changing, 904, queue)[1]["refusal"]["remedies"]
    assert changing("alloc", "thaw", 2, "--reason", "done").code == 0
    again = why(changing, 904, queue)[1]["refusal"]["remedies"]
    assert [remedy.partition(": ")[0] for remedy in again] == ["submit the job again"]


def test_job_that_neither_slurm_nor_the_bank_knows_is_not_found(changing: Run, queue: Path) -> None:
    result = changing("why", 999, "--from", queue)
    assert (result.code, result.out) == (3, "")
    assert "slurmctld has no job 999 that waits" in result.err


def test_bank_is_asked_if_slurm_does_not_answer(
    changing: Run, clean_env: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    clean_env.setenv("PATH", str(tmp_path))
    assert "301 SU were charged" in changing("why", 812_301).out
    unknown = changing("why", 999)
    assert unknown.code == 6
    assert (
        "the bank knows no job 999 that you may see, and Slurm does not answer: cannot run scontrol"
        in " ".join(unknown.err.split())
    )


def test_job_of_a_recording_is_never_that_of_another_cluster(
    changing: Run, clean_env: pytest.MonkeyPatch, queue: Path
) -> None:
    """The bank has a job 812301 on darwin, which the settings name; the recording is of lab."""
    clean_env.setenv("FAIRBANK_CLUSTER", "darwin")
    result = changing("why", 812_301, "--from", QUEUE)
    assert (result.code, result.out) == (3, "")
    message = " ".join(result.err.split())
    assert "has no job 812301 that waits" in message
    assert "nothing is known of its credit: the bank has no cluster 'lab'" in message
    assert "the settings know: darwin" in message
    jobs = queue / "jobs.txt"
    jobs.write_text(jobs.read_text().replace("JobId=1 ", "JobId=812344 "))
    config = queue / "config.txt"
    names = {"lab": "the bank has no cluster 'lab'", "": "Slurm's settings name no cluster"}
    for name, sentence in names.items():
        config.write_text(re.sub(r"(ClusterName +=).*", rf"\1 {name}", config.read_text()))
        running = changing("why", 812_344, "--from", queue, "--json")
        document = json.loads(running.out)
        assert (running.code, document["cluster"]) == (0, name or None)
        assert document["bank"] == ("fairbank" if name else None)  # only that of lab was asked
        assert document["data"][0]["run"] is None
        assert document["warnings"] == [f"nothing is known of its credit: {sentence}"]
        ended = changing("why", 812_301, "--from", queue)
        assert (ended.code, ended.out) == (3, "")
        assert sentence in " ".join(ended.err.split())
    assert f"scontrol show config > {config}" in " ".join(ended.err.split())


def test_file_that_is_missing_is_not_replaced_by_the_bank(changing: Run, tmp_path: Path) -> None:
    result = changing("why", 812_301, "--from", tmp_path)
    assert (result.code, result.out) == (3, "")
    assert "there is no nodes.txt" in " ".join(result.err.split())
