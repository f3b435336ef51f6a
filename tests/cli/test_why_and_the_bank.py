"""`fairbank why` for jobs that the bank holds or would refuse: its reason, its remedies, and who
releases a held job. The jobs are recorded, the bank is real.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fairbank.cli import main
from tests.cli.conftest import Run, runner
from tests.cli.site import AYLA, CPU, STRANGER
from tests.cli.test_why_at_slurm import JOBS, renamed_queue

REFUSED = (
    "chem_qmc: not enough credit: requested 168 SU, available 100 SU, short by 68 SU."
    " Remedy: a shorter time limit: -t 4-04:00:00; or more credit, by staff: fairbank deposit 1 68"
    " --reason '...'"
)


def queue(folder: Path, *, held_as: str | None, uid: int = AYLA) -> Path:
    """Return a recorded queue in which job `second` is of a week, waits or is held by the bank."""
    renamed_queue(folder)
    jobs = folder / "jobs.txt"
    lines = jobs.read_text().splitlines(keepends=True)
    (at,) = [n for n, line in enumerate(lines) if line.startswith(f"JobId={JOBS['second']} ")]
    line = re.sub(r"TimeLimit=\S+", "TimeLimit=7-00:00:00", lines[at])
    line = re.sub(r"UserId=dave\(\d+\)", f"UserId=dave({uid})", line)
    if held_as is not None:
        line = re.sub(r"Priority=\d+", "Priority=0", line)
        line = re.sub(r"Reason=\S+", f"Reason={held_as}", line)
        line = line.replace(" StdErr=", f" AdminComment=Fairbank: {REFUSED}  StdErr=")
    lines[at] = line
    jobs.write_text("".join(lines))
    return folder


def why(fairbank: Run, folder: Path, *words: object) -> tuple[str, dict[str, Any]]:
    """Return the text of the explanation as one line, and its data."""
    command = ("why", JOBS["second"], "--from", folder, "--no-likely", *words)
    text, document = fairbank(*command), fairbank(*command, "--json")
    assert (text.code, document.code) == (0, 0), text.err
    return " ".join(text.out.split()), json.loads(document.out)["data"][0]


@contextmanager
def changed(fairbank: Run, *commands: tuple[object, ...]) -> Iterator[None]:
    """Run the first command before the block and the others after it."""
    first, *undo = commands
    assert fairbank(*first).code == 0
    try:
        yield
    finally:
        for command in undo:
            assert fairbank(*command).code == 0


WHY = ("--reason", "test")
CASES = {
    "FROZEN": (
        (("alloc", "freeze", CPU, *WHY), ("alloc", "thaw", CPU, *WHY)),
        "the allocation is frozen",
        f"have it thawed, by staff: fairbank alloc thaw {CPU} --reason '...'",
    ),
    "CAPPED": (
        (("alloc", "cap", CPU, AYLA, "10"), ("alloc", "cap", CPU, AYLA, "none")),
        "the user's cap in this allocation is reached",
        f"a higher cap, by the PI, a coordinator or staff: fairbank alloc cap {CPU} {AYLA} ",
    ),
    "INSUFFICIENT_CREDIT": (
        (("withdraw", CPU, "59300", *WHY, "--yes"), ("deposit", CPU, "59300", *WHY)),
        "not enough credit: requested 168 SU, available ",
        "a shorter time limit: -t 4-",
    ),
    "NO_ALLOCATION": (
        (
            ("alloc", "set", CPU, "--end", "2026-11-21T07:00:00", *WHY, "--yes"),
            ("alloc", "reopen", CPU, "--end", "2027-07-01", *WHY),
        ),
        "the project has no allocation of this resource at this time",
        f"extend it, by staff: fairbank alloc reopen {CPU} --end ... --reason '...'",
    ),
}


@pytest.mark.parametrize("held_as", [None, "Allocation_exhausted"])
@pytest.mark.parametrize("reason", CASES)
def test_reason_and_remedy_are_those_of_the_bank(
    changing: Run, tmp_path: Path, reason: str, held_as: str | None
) -> None:
    commands, detail, remedy = CASES[reason]
    with changed(changing, *commands):
        text, data = why(changing, queue(tmp_path / "queue", held_as=held_as))
    refusal = data["refusal"]
    assert (refusal["reason"], refusal["held_as"]) == (reason, held_as)
    assert refusal["detail"].startswith(detail)
    assert any(text.startswith(remedy) for text in refusal["remedies"])
    assert "x credit: needs a hold of 168 SU" in text
    assert f" Remedy {refusal['remedies'][0]}" in text
    assert ("short by" in text) == (reason in ("INSUFFICIENT_CREDIT", "CAPPED"))
    assert "Start unknown as long as the bank refuses it" in text
    assert (data["expected"], data["likely"], "Reserved start" in text) == (None, None, False)
    if held_as is None:
        assert f" The bank would refuse it: {detail}" in text
        assert refusal["release"] is None
    else:
        assert f"Job {data['job']} is held by the bank ({held_as}): {detail}" in text
        assert "nothing to try" not in text
        assert (
            f"Release then: by an operator with scontrol release {data['job']}, or by the agent if"
            " its settings have when_paid = true" in text
        )


def test_held_job_that_the_bank_would_accept_now_only_needs_its_release(
    changing: Run, tmp_path: Path
) -> None:
    text, data = why(changing, queue(tmp_path / "queue", held_as="User_cap_reached"))
    assert data["refusal"]["remedies"] == []
    assert "ok credit: needs a hold of 168 SU" in text
    release = f"the bank would accept it now: by an operator with scontrol release {data['job']}"
    assert data["refusal"]["release"] == release
    assert f" Release {release}" in text


def test_refusal_of_a_held_job_is_shown_without_a_bank(
    clean_env: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run = runner(main.run, capsys)
    _, data = why(run, queue(tmp_path / "queue", held_as="Allocation_exhausted"))
    assert data["refusal"] == {
        "held_as": "Allocation_exhausted",
        "reason": "INSUFFICIENT_CREDIT",
        "detail": "chem_qmc: not enough credit: requested 168 SU, available 100 SU, short by 68 SU."
        " Remedy: a shorter time limit: -t 4-04:00:00; or more credit, by staff: fairbank deposit"
        " 1 68 --reason '...'",
        "remedies": [],
        "release": f"then: by an operator with scontrol release {data['job']}, or by the agent if"
        " its settings have when_paid = true",
    }
    assert data["code"] == data["slurm_reason"] == "Allocation_exhausted"


def test_job_that_waits_for_the_bank_is_released_by_the_plug_in(
    clean_env: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run = runner(main.run, capsys)
    _, data = why(run, queue(tmp_path / "queue", held_as="Fairbank_does_not_answer"))
    assert data["refusal"]["release"] == "by the plug-in, as soon as the bank answers"


def test_components_of_a_heterogeneous_job_are_released_together(
    clean_env: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = queue(tmp_path / "queue", held_as="No_allocation")
    jobs, number = folder / "jobs.txt", JOBS["second"]
    component = f"JobId={number} HetJobId={number} HetJobOffset=0 HetJobIdSet={number} "
    jobs.write_text(jobs.read_text().replace(f"JobId={number} ", component))
    _, data = why(runner(main.run, capsys), folder)
    assert f" with scontrol release {number}," in data["refusal"]["release"]


def test_start_that_slurmctld_expects_of_a_held_job_is_not_shown(
    clean_env: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """It is the time from which the job might start, two minutes after it was requeued."""
    folder = queue(tmp_path / "queue", held_as="Allocation_exhausted")
    jobs = folder / "jobs.txt"
    pattern = rf"(?m)^(JobId={JOBS['second']} .*) StartTime=\S+ "
    jobs.write_text(re.sub(pattern, r"\1 StartTime=2026-11-22T18:03:17 ", jobs.read_text()))
    _, data = why(runner(main.run, capsys), folder)
    assert data["slurm_expects"] is None


def test_job_that_the_bank_would_refuse_cannot_start(changing: Run, tmp_path: Path) -> None:
    """Nodes are free for the released job, and slurmctld has no reason yet."""
    folder, number = renamed_queue(tmp_path / "queue"), JOBS["held"]
    jobs = folder / "jobs.txt"
    text = jobs.read_text().replace("wg_bio", "chem_qmc").replace("wg_astro", "chem_qmc")
    released = rf"(?m)^(JobId={number} .*) Priority=0 (.*) Reason=\S+ "
    jobs.write_text(re.sub(released, r"\1 Priority=101000 \2 Reason=None ", text))
    command = ("why", number, "--from", folder, "--no-likely")
    assert f"job {number} can start" in changing(*command).err
    with changed(changing, ("alloc", "freeze", CPU, *WHY), ("alloc", "thaw", CPU, *WHY)):
        result = changing(*command)
    assert result.code == 0
    assert (
        f"Job {number} waits for the next pass of slurmctld (None). The bank would refuse it: the"
        " allocation is frozen:" in " ".join(result.out.split())
    )


def test_suggestion_is_accepted_by_the_bank(changing: Run, tmp_path: Path) -> None:
    """Job `whole` would start earlier with fewer nodes, but not if its allocation is frozen."""
    folder = renamed_queue(tmp_path / "queue")
    jobs = folder / "jobs.txt"
    jobs.write_text(jobs.read_text().replace("wg_astro", "chem_qmc"))
    command = ("why", JOBS["whole"], "--from", folder, "--no-likely", "--json")

    def advice() -> tuple[str | None, list[str]]:
        document = json.loads(changing(*command).out)
        assert document["bank"] == "fairbank"
        (data,) = document["data"]
        suggestion = data["suggestion"]
        return suggestion and suggestion["option"], data["tried"]

    option, tried = advice()
    assert option == "-N 3 -n 3"
    with changed(changing, ("alloc", "freeze", CPU, *WHY), ("alloc", "thaw", CPU, *WHY)):
        assert advice() == (None, tried)


@pytest.mark.parametrize("reason", ["JobHeldAdmin", "JobHeldUser"])
def test_hold_by_a_person_is_not_shown_as_one_of_the_bank(
    clean_env: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, reason: str
) -> None:
    run = runner(main.run, capsys)
    _, data = why(run, queue(tmp_path / "queue", held_as=reason))
    assert (data["refusal"], data["code"]) == (None, reason)


def test_bank_that_does_not_show_the_project_is_named_with_its_remedy(
    changing: Run, tmp_path: Path
) -> None:
    folder = queue(tmp_path / "queue", held_as=None)
    result = changing(
        "why", JOBS["second"], "--from", folder, "--no-likely", "--no-advice", "--as", STRANGER
    )
    error = " ".join(result.err.split())
    assert "there is no project with the account 'chem_qmc' that you may see; list yours" in error
    assert result.out.split("\n", 1)[0].endswith("   bank fairbank   cluster darwin"), result.out
