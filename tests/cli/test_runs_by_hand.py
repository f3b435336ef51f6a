"""`hold`, `charge` and `release` by hand: runs that no agent reports.

The site's clock stands at 2026-11-21 12:30:12 UTC, which is 07:30:12 in New York. Partition
idle-std prices CPU=1.0,Mem=0.5G by the dearest, so 4 CPUs and 2 GiB cost 4 SU an hour.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.cli.output_values import available, fold, output_of
from tests.cli.site import AYLA, CPU, GPU, JORGE, STRANGER

JOB = ("-A", "chem_qmc", "-p", "idle-std", "-u", JORGE, "--tres", "cpu=4,mem=2G")
START = ("-S", "2026-11-21T05:30:12")


def row_of(changing: Run, job: int) -> dict[str, Any]:
    (row,) = json.loads(output_of(changing("jobs", "-a", "-j", job, "--json")))["data"]
    return dict(row)


@pytest.fixture(autouse=True)
def zone_of_the_site(clean_env: pytest.MonkeyPatch) -> None:
    clean_env.delenv("FAIRBANK_CLUSTER", raising=False)


def test_hold_and_charge_move_what_the_partition_prices(changing: Run) -> None:
    """A limit of 3 h holds 3 x 4 = 12 SU. The job runs 2 h, from 05:30:12 to 07:30:12, and costs
    2 x 4 = 8 SU, so 4 SU of the hold come back.
    """
    before = available(changing, CPU)
    held = changing("hold", 17, "-t", "3:00:00", *JOB, *START)
    sentence = "hold of 12 SU for job 17 of cluster darwin, allocation 1 (chem_qmc/cpu)"
    assert sentence in fold(output_of(held))
    assert available(changing, CPU) == before - 720
    charged = changing("charge", 17)
    sentence = (
        "charge of 8 SU for job 17 of cluster darwin, allocation 1 (chem_qmc/cpu);"
        " 4 SU of its hold returned"
    )
    assert sentence in fold(output_of(charged))
    assert available(changing, CPU) == before - 480
    row = row_of(changing, 17)
    assert (row["owner_uid"], row["outcome"], row["elapsed"]) == (JORGE, "COMPLETED", 7200)
    again = fold(output_of(changing("charge", 17, "--units", "m")))
    assert "charge of 480 SU-minutes for job 17" in again
    assert f"remaining {available(changing, CPU):,} SU-minutes" in again


def test_charge_of_a_run_that_cost_nothing_is_called_a_release(changing: Run) -> None:
    """The clock stands still, so the run lasted 0 s."""
    before = available(changing, CPU)
    output_of(changing("hold", 95, "-t", "1:00:00", *JOB))
    for _ in range(2):
        ended = fold(output_of(changing("charge", 95)))
        assert "release of 4 SU for job 95 of cluster darwin" in ended
        assert "; it cost nothing, so nothing is charged; remaining" in ended
    assert available(changing, CPU) == before


def test_repeated_command_is_applied_once(changing: Run) -> None:
    hold = ("hold", 18, "-t", "1:00:00", *JOB)
    first, second = changing(*hold), changing(*hold)
    assert output_of(first) == output_of(second)
    assert "carried out before" in second.err
    charge = ("charge", 18, "--amount", "3.5")
    output_of(changing(*charge))
    before = available(changing, CPU)
    assert "carried out before" in changing(*charge).err
    assert available(changing, CPU) == before
    other = changing("charge", 18, "--amount", "3")
    assert "already" in output_of(other, 7)
    assert available(changing, CPU) == before
    reused = fold(output_of(changing(*hold), 7))
    assert "job 18 of cluster darwin was charged already" in reused
    assert "--submitted TIME" in reused
    output_of(changing(*hold, "--submitted", "2026-11-21T07:00"))


@pytest.mark.parametrize(("job", "counted"), [(51, ""), (52, ",gres/gpu=2")])
def test_gpus_given_by_type_are_charged(changing: Run, job: int, counted: str) -> None:
    """2 GPUs cost 2 SU an hour, more than 16 CPUs (1 SU). The job runs 2 h."""
    gpus = ("--tres", f"cpu=16,gres/gpu:1g.10gb=2{counted}", "-p", "gpu-v100")
    before = available(changing, GPU)
    output_of(changing("charge", job, "-A", "chem_qmc", "-u", JORGE, *gpus, *START))
    assert available(changing, GPU) == before - 240


def test_kept_refusal_of_another_user_is_found_by_the_named_command(changing: Run) -> None:
    """Staff hold for jorge: without a number the list has only their own jobs."""
    refused = changing("hold", 96, *JOB[:6], "-t", "365-0", "--tres", "cpu=4000000")
    (number, command) = re.findall(
        r"kept as refusal (\d+): fairbank (.*) bank: ", fold(refused.err)
    )[0]
    rows = json.loads(output_of(changing(*command.split(), "--json")))["data"]
    assert [(row["id"], row["owner_uid"]) for row in rows] == [(int(number), JORGE)]


def test_another_hold_of_a_held_job_is_refused(changing: Run) -> None:
    output_of(changing("hold", 19, "-t", "1:00:00", *JOB))
    before = available(changing, CPU)
    assert "refused" in output_of(changing("hold", 19, "-t", "2:00:00", *JOB), 7)
    assert available(changing, CPU) == before


def test_release_returns_the_whole_hold(changing: Run) -> None:
    before = available(changing, CPU)
    output_of(changing("hold", 20, "-t", "1:00:00", *JOB))
    output = output_of(changing("release", 20, "--reason", "never started"))
    assert "release of 4 SU for job 20 of cluster darwin" in fold(output)
    assert available(changing, CPU) == before
    assert "carried out before" in changing("release", 20).err
    assert "never started" in changing("statement", CPU, "-l", "-S", "2026-11-21").out


def test_released_run_is_no_failed_job_and_used_no_processor_time(changing: Run) -> None:
    output_of(changing("hold", 41, "-t", "3:00:00", *JOB))
    output_of(changing("release", 41, "--reason", "never started"))
    shown = changing("jobs", "-a", "-j", 41, "-n", "-P", "-o", "STATE,ELAPSED,SU,REASON")
    assert output_of(shown) == "CANCELLED|00:00:00|0|not charged\n"
    assert output_of(changing("jobs", "-a", "-j", 41, "--failed", "-n", "-P")) == ""
    assert "not known" not in changing("eff", 41).err


def test_free_state_releases_and_a_charged_run_cannot_be_released(changing: Run) -> None:
    output_of(changing("hold", 21, "-t", "1:00:00", *JOB, *START))
    assert "release of 4 SU" in output_of(changing("charge", 21, "--state", "NODE_FAIL"))
    output_of(changing("hold", 22, "-t", "1:00:00", *JOB))
    output_of(changing("charge", 22, "--amount", "1"))
    assert "already" in output_of(changing("release", 22), 7)


def test_charge_without_a_hold_names_what_is_missing(changing: Run) -> None:
    error = output_of(changing("charge", 23), 3)
    assert "job 23 has no hold on cluster darwin" in error
    assert "with -A, -S, --tres or --amount" in fold(error)
    assert "job 23 has no hold" in output_of(changing("release", 23), 3)
    before = available(changing, CPU)
    output_of(changing("charge", 23, *JOB, *START))
    assert available(changing, CPU) == before - 480


def test_hold_of_an_amount_needs_an_amount_to_charge(changing: Run) -> None:
    words = ("-A", "chem_qmc", "-p", "gpu-v100", "--amount", "10", "-t", "60")
    before = available(changing, GPU)
    output_of(changing("hold", 24, *words))
    assert available(changing, GPU) == before - 600
    assert "--amount 12.5" in output_of(changing("charge", 24), 2)
    output_of(changing("charge", 24, "--amount", "90m"))
    assert available(changing, GPU) == before - 90


def test_amount_above_hold_or_cap_is_charged_with_a_warning(changing: Run) -> None:
    """Job 33 holds 4 SU of a cap of 100 SU and 20 minutes, and the user has used nothing else. Its
    charge leaves 10 SU and 20 minutes, which are 10.33 SU.
    """
    job = ("-A", "chem_qmc", "-p", "idle-std", "-u", AYLA)
    users = json.loads(output_of(changing("alloc", "users", CPU, "--json")))["data"]
    used = sum(user["charged"] + user["held"] for user in users if user["uid"] == AYLA)
    output_of(changing("hold", 33, "-t", "60", *job, "--amount", 4))
    output_of(changing("alloc", "cap", CPU, AYLA, f"{used + 6020}m"))
    charge = ("charge", 33, "--amount", 90)
    above_hold = "the job holds 4 SU, 86 SU less"
    planned = changing(*charge, "--dry-run")
    assert above_hold in fold(planned.err)
    assert "cap" not in fold(planned.err)
    done = changing(*charge, "--json")
    assert json.loads(output_of(done))["warnings"] == [f"! {above_hold}"]
    again = changing(*charge)
    assert above_hold not in fold(output_of(again) + again.err)
    without_hold = changing("charge", 34, *START, *job, "--amount", 30)
    assert f"cap of {AYLA} in allocation {CPU} leaves 10.33 SU, 19.67 SU less" in fold(
        without_hold.err
    )
    output_of(without_hold)
    output_of(changing("alloc", "cap", CPU, AYLA, "none"))


def test_amount_beyond_the_credit_needs_yes_without_terminal(changing: Run) -> None:
    """1,000,000,000 SU typed instead of 10: the credit covers next to nothing of it."""
    before = available(changing, CPU)
    words = ("charge", 35, *START, "-A", "chem_qmc", "-p", "idle-std", "-u", JORGE, "--amount")
    for amount in (before // 60 + 1, 1_000_000_000):
        error = fold(output_of(changing(*words, amount), 2))
        assert "there is no terminal to ask on, so nothing was changed: charge of" in error
        assert "of it exceed the credit and are written off. Continue?" in error
        assert "field: --yes try: add --yes" in error
        assert available(changing, CPU) == before
    assert "SU beyond the credit written off" in fold(
        output_of(changing(*words, before // 60 + 1, "--yes"))
    )
    output_of(changing("refund", 35, "--reason", "test"))


def test_price_of_typed_tres_beyond_the_credit_needs_yes_without_terminal(changing: Run) -> None:
    """400,000 CPUs typed instead of 4 cost 800,000 SU for the two hours."""
    before = available(changing, CPU)
    beyond = 800_000 - before / 60
    words = ("charge", 36, *START, "-A", "chem_qmc", "-p", "idle-std", "-u", JORGE, "--tres")
    error = fold(output_of(changing(*words, "cpu=400000"), 2))
    assert "so nothing was changed: charge of 800,000 SU for job 36" in error
    assert f"{beyond:,.2f} SU of it exceed the credit and are written off. Continue?" in error
    assert available(changing, CPU) == before
    planned = fold(output_of(changing(*words, "cpu=400000", "--dry-run")))
    assert f"written off {beyond:,.2f} SU" in planned
    assert "elapsed 02:00:00, ended 2026-11-21 07:30:12" in planned


def test_price_of_typed_tres_above_the_hold_is_charged_with_a_warning(changing: Run) -> None:
    output_of(changing("hold", 37, "-t", "2:00:00", *JOB, *START))
    done = changing("charge", 37, "--tres", "cpu=10")
    assert "the job holds 8 SU, 12 SU less" in fold(done.err)
    assert "charge of 20 SU for job 37" in fold(output_of(done))


def with_options(options: tuple[object, ...], more: tuple[str, ...]) -> tuple[object, ...]:
    """Return options with their values, some of them with others: none may be given twice."""
    pairs: dict[object, object] = dict(zip(options[::2], options[1::2], strict=True))
    pairs |= dict(zip(more[::2], more[1::2], strict=True))
    return tuple(word for pair in pairs.items() for word in pair)


WRONG_OPTIONS = [
    (("-q", "stndby"), "-q", "there is no QOS 'stndby' in the bank's settings"),
    (("-S", "2027-01-01"), "-S", "'2027-01-01' is in the future"),
    (("--submitted", "2027-01-01"), "--submitted", "'2027-01-01' is after the start"),
    (("-A", "nope"), "-A", "there is no project 'nope' that you may see"),
    (("-p", "nowhere"), "-p", "there is no partition 'nowhere'"),
]


@pytest.mark.parametrize(
    ("verb", "words", "field", "message"),
    [
        *((verb, *wrong) for verb in ("hold", "charge") for wrong in WRONG_OPTIONS),
        ("charge", ("-E", "2027-01-01"), "-E", "'2027-01-01' is in the future"),
    ],
)
def test_wrong_option_is_named_and_nothing_is_written(
    changing: Run, verb: str, words: tuple[str, ...], field: str, message: str
) -> None:
    limit = ("-t", "60") if verb == "hold" else ()
    before = available(changing, CPU)
    wrong = changing(verb, 38, *with_options((*limit, *JOB, *START), words), "--json")
    problem = json.loads(wrong.out)
    assert wrong.code in (2, 3)
    assert (problem["field"], message in problem["detail"]) == (field, True), problem
    assert "kept as refusal" not in wrong.err
    assert output_of(changing("jobs", "--refused", "-a", "-j", 38, "-n", "-P")) == ""
    assert available(changing, CPU) == before


def test_qos_with_its_own_resource_has_credit_of_its_own(changing: Run) -> None:
    """With QOS debug 4 CPUs cost 4 SU an hour of debug, wherever the job is priced: by a quote, a
    hold, a charge, an import. The cpu allocation stays as it is.
    """
    hold = ("hold", 31, "-t", "2:00:00", *JOB, "-q", "debug")
    assert "fairbank alloc" in output_of(changing(*hold), 5)  # no allocation of debug yet
    grant = ("-A", "chem_qmc", "-r", "debug", "--start", "2026-07-01", "--end", "2027-07-01")
    opened = changing("alloc", "create", *grant, "--amount", 20, "--reason", "x", "--json")
    debug = json.loads(output_of(opened))["data"]["id"]
    assert opened.err == ""  # no warning that nothing bills it
    before = available(changing, CPU)
    quote = ("-A", "chem_qmc", "-p", "idle-std", "-c", 4, "-t", "2:00:00", "-q", "debug", "--json")
    priced = json.loads(output_of(changing("quote", *quote)))["quote"]
    assert (priced["resource"], priced["amount"]) == ("debug", 480)
    output_of(changing(*hold))
    assert available(changing, debug) == 20 * 60 - 480
    output_of(changing("charge", 31, "--amount", 5))
    assert available(changing, debug) == 15 * 60
    assert "debug" in changing("usage", "--by", "resource", "-S", "2026-11-21").out
    for of_one in ("eff 31", "jobs -j 31"):  # also a single job names what its SU are of
        assert "unit SU of debug" in changing(*of_one.split()).out
    assert available(changing, CPU) == before


def test_free_qos_costs_nothing(changing: Run) -> None:
    before = available(changing, CPU)
    output_of(changing("hold", 32, "-t", "2:00:00", *JOB, *START, "-q", "standby"))
    output_of(changing("charge", 32))
    assert available(changing, CPU) == before
    assert row_of(changing, 32)["charged"] == 0


def test_dry_run_shows_the_entry_and_changes_nothing(changing: Run) -> None:
    before = available(changing, CPU)
    planned = changing("hold", 25, "-t", "3:00:00", *JOB, "--dry-run", "--json")
    (entry,) = json.loads(output_of(planned))["data"]
    assert (entry["kind"], entry["amount"]) == ("hold", 720)
    assert available(changing, CPU) == before
    assert json.loads(changing("jobs", "-a", "-j", 25, "--json").out)["data"] == []


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("-M", "lab"), 3, "there is no cluster 'lab'"),
        (("--tres", "cpu=nan"), 2, "tres"),
        (("--tres", "cpu=-1"), 2, "tres"),
        (("-t", "0"), 2, "not a finite time limit"),
        (("-t", "UNLIMITED"), 2, "not a finite time limit"),
        (("-t", "999999999:00:00"), 2, "'999999999:00:00' is longer than the bank counts"),
        (("-S", ""), 2, "'' is not a time"),
        (("-S", "21.11.2026"), 2, "'21.11.2026' is not a time"),
        (("-p", "nowhere"), 3, "no partition 'nowhere'"),
        (("-A", "nobody"), 3, "there is no project 'nobody'"),
        (("-u", "nobody-here"), 3, "there is no user 'nobody-here'"),
        (("--tres", "cpu=4000000", "-t", "365-0"), 5, "refused"),
    ],
)
def test_wrong_input_is_named_and_nothing_is_held(
    changing: Run, words: tuple[str, ...], code: int, text: str
) -> None:
    before = available(changing, CPU)
    options = with_options(("-t", "60", *JOB), words)
    assert text in fold(output_of(changing("hold", 26, *options), code))
    assert available(changing, CPU) == before


def test_wrong_amount_is_named(changing: Run) -> None:
    output_of(changing("hold", 27, "-t", "60", "-A", "chem_qmc", "-p", "idle-std", "--amount", "4"))
    before = available(changing, CPU)
    for amount in ("-1", "nan", "1e9", "", "99999999999999999"):
        error = output_of(changing("charge", 27, f"--amount={amount}"), 2)
        assert "  field: --amount\n" in error, amount
    assert available(changing, CPU) == before


def test_job_number_and_partition_are_checked(changing: Run) -> None:
    assert "too large" in output_of(changing("hold", 2**32, "-t", "60", *JOB), 2)
    words = ("hold", 28, "-t", "60", "-A", "chem_qmc", "--tres", "cpu=1")
    assert "name one with -p: gpu-v100, idle-std" in output_of(changing(*words), 2)


def test_member_may_not_report_runs(changing: Run) -> None:
    error = output_of(changing("hold", 29, "-t", "60", *JOB, "--as", JORGE), 4)
    assert "you may not report runs of cluster darwin" in error
    output_of(changing("hold", 29, "-t", "60", *JOB, "--as", AYLA))  # the cluster's agent
    output_of(changing("release", 29))


def test_remedy_of_a_wrong_time_names_the_option(changing: Run) -> None:
    output_of(changing("hold", 60, "-t", "60", *JOB, *START))
    error = fold(output_of(changing("charge", 60, "-E", "2026-11-21T04:00"), 2))
    assert "the run ends before it starts" in error
    assert "field: -E try: give another -E TIME: end of the run (default: now)" in error
    output_of(changing("release", 60))


@pytest.mark.parametrize(
    "command",
    [
        ("hold", 61, "-t", "60", *JOB, "-S", "2026-11-01T01:30"),
        ("charge", 61, *JOB, "-S", "2026-11-01T00:30", "-E", "2026-11-01T01:30"),
    ],
)
def test_time_that_occurs_twice_is_not_guessed(changing: Run, command: tuple[object, ...]) -> None:
    before = available(changing, CPU)
    error = fold(output_of(changing(*command), 2))
    assert "'2026-11-01T01:30' occurs twice, at the change from summer time" in error
    assert "2026-11-01T01:30:00-04:00 or 2026-11-01T01:30:00-05:00" in error
    assert available(changing, CPU) == before


def test_hold_and_charge_of_a_stranger_warn(changing: Run) -> None:
    """The run is held, as Slurm decides who may use an account: the user may be a typing error."""
    stranger = (*JOB[:4], "-u", STRANGER, *JOB[6:])
    warning = "not a member of chem_qmc; if the user is right, add them: fairbank project add-user"
    for words in (("hold", 61, "-t", "60", *stranger), ("charge", 62, *stranger, *START)):
        result = changing(*words)
        assert result.code == 0
        assert warning in fold(result.err)
    assert "no member" not in changing("charge", 61).err
    assert "no member" not in changing("hold", 63, "-t", "60", *JOB).err
    output_of(changing("release", 63))


def test_suggested_command_quotes_the_account(changing: Run) -> None:
    output_of(changing("project", "create", "corp", "--gid", 5_064, "-A", "CORP\\bio lab"))
    create = ("alloc", "create", "-A", "CORP\\bio lab", "-r", "cpu", "--start", "2026-11-01")
    created = changing(*create, "--end", "2030-01-01", "--amount", 100, "--reason", "x", "--json")
    allocation = json.loads(output_of(created))["data"]["id"]
    job = ("-A", "CORP\\bio lab", *JOB[2:4], "-u", STRANGER, *JOB[6:])
    for words in (("hold", 64, "-t", "60", *job), ("alloc", "cap", allocation, STRANGER, "5k")):
        result = changing(*words)
        assert result.code == 0, result.err
        assert f"project add-user 'CORP\\bio lab' {STRANGER}" in fold(result.err)
    output_of(changing("release", 64))
