"""Credit that a user can use: caps, frozen, planned and ended allocations, by real commands.

The site's GPU allocation 2 of chem_qmc: 5,000 SU granted, 4,610 used (4,000 by jorge, 610 by minh),
128 held by a job of jorge, so 262 remain. Its CPU allocation 1: 100,000 granted, 59,408 remain.
"""

from __future__ import annotations

import csv
import json
import re
from decimal import Decimal
from typing import Any

import pytest

from fairbank.cli import main
from fairbank.cli.framework.host import own_name
from tests.cli.conftest import Run, runner
from tests.cli.output_values import fold
from tests.cli.served_site import serve_site
from tests.cli.site import AYLA, DANA, JORGE

WHY = ("--reason", "committee")


def rows(run: Run, *words: object) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the rows of a list by resource and state."""
    data = json.loads(run(*words, "--json").out)["data"]
    return {(row["resource"], row["state"]): row for row in data}


def test_what_running_jobs_hold_of_two_resources_is_not_added(changing: Run) -> None:
    """8 cores for 2 hours hold 16 SU of cpu, beside the 128 of gpu."""
    assert "Your running jobs, 128 of gpu held" in changing("--as", JORGE).out
    hold = ("hold", 29, "-A", "chem_qmc", "-p", "idle-std", "-t", "2:00:00", "--tres", "cpu=8")
    assert changing(*hold, "-u", JORGE).code == 0
    assert "Your running jobs, 16 of cpu, 128 of gpu held" in changing("--as", JORGE).out
    changing("release", 29, "--reason", "never started")


def test_available_is_what_is_left_of_the_cap(changing: Run) -> None:
    """With a cap of 4,200 jorge has 4,200 - 4,000 - 128 = 72 SU left, less than the 262 that
    remain. With a cap of 5,000 he has 872 left, so the 262 count.
    """
    changing("alloc", "cap", 2, JORGE, 4200, *WHY)
    for verb in (("balance", "-A", "chem_qmc"), ("alloc", "list", "-A", "chem_qmc")):
        mine = rows(changing, *verb, "--as", JORGE)["gpu", "active"]
        assert mine["my_cap"] == 4_200 * 60
        assert (mine["my_charged"], mine["my_held"]) == (4_000 * 60, 128 * 60)
        assert mine["my_left"] == mine["available"] == 72 * 60
        assert (mine["remaining"], mine["display"]["available"]) == (262 * 60, "72")
    shown = changing("balance", "-A", "chem_qmc", "-r", "gpu", "--as", JORGE)
    head, row = (line.split() for line in shown.out.splitlines()[2:4])
    cells = dict(zip(head, row, strict=False))
    assert (cells["MY-CAP"], cells["MY-LEFT"], cells["AVAILABLE"]) == ("4200", "72", "72")
    assert (
        "262 SU remain, but your cap is 4,200: you used 4,000 and hold 128, 72 left"
    ) in " ".join(shown.err.split())
    assert "MY-CAP" in changing("--as", JORGE).out
    theirs = changing("balance", "-A", "chem_qmc", "-r", "gpu", "--as", AYLA)
    assert "MY-CAP" not in theirs.out
    assert " 262 " in theirs.out
    quote = changing(
        "quote", "-A", "chem_qmc", "-p", "gpu-v100", "--gpus", 1, "-t", "60", "--as", JORGE
    )
    assert "available         72 -> 71 SU   fits" in quote.out
    changing("alloc", "cap", 2, JORGE, 5000, *WHY)
    mine = rows(changing, "balance", "-A", "chem_qmc", "--as", JORGE)["gpu", "active"]
    assert (mine["my_left"], mine["available"]) == (872 * 60, 262 * 60)


def test_user_above_a_lowered_cap_of_an_empty_allocation_sees_why(changing: Run) -> None:
    """After a withdrawal of the 262 SU the 128 held are all that is left of the grant. With a cap
    of 4,100 jorge has 4,100 - 4,000 - 128 = -28 left.
    """
    changing("alloc", "cap", 2, JORGE, 4100, *WHY)
    shown = fold(changing("balance", "-A", "chem_qmc", "-r", "gpu", "--as", JORGE).err)
    assert "262 SU remain, but your cap is 4,100: you used 4,000 and hold 128, -28 left" in shown
    assert changing("withdraw", 2, 262, *WHY, "--yes").code == 0
    mine = changing("balance", "-A", "chem_qmc", "-r", "gpu", "--as", JORGE)
    head, row = (line.split() for line in mine.out.splitlines()[2:4])
    cells = dict(zip(head, row, strict=False))
    assert (cells["HELD"], cells["MY-LEFT"], cells["AVAILABLE"]) == ("128", "-28", "0")
    assert "chem_qmc/gpu: you used 4,000 and hold 128 of your cap of 4,100 SU" in fold(mine.err)
    assert " !! empty" in mine.out
    sentence = "!! chem_qmc/gpu: empty while running jobs hold 128 SU; new jobs are refused."
    assert sentence in fold(mine.err)
    assert changing("deposit", 2, 262, *WHY).code == 0


def test_rows_for_scripts_add_up_and_have_the_same_columns_for_all_data(changing: Run) -> None:
    """GRANTED + LIMIT = USED + HELD + REMAINING, and the cap is shown, as in a table."""
    changing("alloc", "cap", 2, JORGE, 4200, *WHY)
    changing("alloc", "freeze", 1, "--reason", "audit of June")
    headers = set()
    for user in (JORGE, AYLA):
        for words, delimiter in ((["--csv"], ","), (["-P"], "|")):
            shown = changing("balance", "-A", "chem_qmc", *words, "--as", user).out
            header, *lines = csv.reader(shown.splitlines(), delimiter=delimiter)
            headers.add(tuple(head for head in header if not head.endswith("-MINUTES")))
            rows_by_kind = {line[1]: dict(zip(header, line, strict=True)) for line in lines}
            for row in rows_by_kind.values():
                amounts = ("GRANTED", "LIMIT", "USED", "HELD", "REMAINING")
                granted, limit, used, held, remaining = (Decimal(row[name]) for name in amounts)
                assert granted + limit == used + held + remaining
            gpu = rows_by_kind["gpu"]
            cap = ("4200", "72") if user == JORGE else ("", "")
            assert (gpu["MY-CAP"], gpu["MY-LEFT"], gpu["REMAINING"]) == (*cap, "262")
            assert (gpu["STATE"], rows_by_kind["cpu"]["STATE"]) == ("active", "frozen")
    assert len(headers) == 1


def test_every_column_that_does_not_fit_is_named(
    changing: Run, clean_env: pytest.MonkeyPatch
) -> None:
    changing("alloc", "cap", 2, JORGE, 4200, *WHY)
    for words in ((), ("balance",)):
        clean_env.setenv("COLUMNS", "119")
        (wide,) = _headers(changing(*words, "--as", JORGE).out)
        assert {"GRANTED", "MY-CAP", "USED%", "EXPIRES", "RUNS-OUT"} <= wide
        for columns in ("60", "80", "100"):
            clean_env.setenv("COLUMNS", columns)
            shown = changing(*words, "--as", JORGE)
            (header,) = _headers(shown.out)
            text = " ".join((shown.out + shown.err).split())
            title = re.search(r"What is left \(without (.*?):", text)
            below = re.search(r"([-A-Z%, ]+): not shown, as the terminal is too narrow", text)
            named = below if words else title
            assert wide - header == set(named[1].strip().split(", ") if named else ())


def _headers(text: str) -> list[set[str]]:
    return [{*line.split()} for line in text.splitlines() if line.startswith("PROJECT ")]


def test_threshold_is_compared_with_what_the_user_can_use(changing: Run) -> None:
    changing("alloc", "cap", 2, JORGE, 4200, *WHY)
    gpu = ("balance", "-A", "chem_qmc", "-r", "gpu", "--as", JORGE, "--threshold")
    assert changing(*gpu, 72).code == 0
    less = changing(*gpu, 100)
    assert less.code == 5
    assert "chem_qmc/gpu: you may use 72 SU, less than 100" in less.err
    assert changing(*gpu, 100, "--units", "m").err.count("4,320 SU-minutes, less than 6,000") == 1
    changing("alloc", "cap", 2, JORGE, "none", *WHY)
    assert changing(*gpu, 100).code == 0


def test_allocation_that_cannot_be_used_is_shown_with_its_reason(changing: Run) -> None:
    """A planned allocation does not make a threshold fail; a frozen one does."""
    changing(
        *("alloc", "create", "-A", "chem_qmc", "-r", "gpu", "--category", "research"),
        *("--start", "2027-07-01", "--end", "2028-07-01", "--amount", 500),
        *("--reason", "call 2027"),
    )
    changing("alloc", "freeze", 1, "--reason", "audit of June")
    changing("alloc", "set", 1, "--shared", "--reason", "later, unrelated")
    details = changing("alloc", "show", 1).out
    assert re.search(r"state +frozen\nsince +2026-11-\S+ \S+\nreason +audit of June\n", details)
    for words in ((), ("balance",)):
        shown = changing(*words, "--as", AYLA)
        text = " ".join((shown.out + shown.err).split())
        assert "chem_qmc/cpu: frozen since 2026-11-21 07:30:12: audit of June" in text
        assert "gpu: planned, begins 2027-07-01 00:00:00; reason of the grant: call 2027" in text
    balances = rows(changing, "balance", "--as", AYLA)
    frozen, planned = balances["cpu", "frozen"], balances["gpu", "planned"]
    assert (frozen["available"], frozen["remaining"]) == (0, 59_408 * 60)
    assert frozen["state_since"] == "2026-11-21T12:30:12Z"
    assert (planned["available"], planned["remaining"]) == (0, 500 * 60)
    assert (balances["gpu", "active"]["state_since"], planned["state_reason"]) == (
        None,
        "call 2027",
    )
    assert changing("balance", "-r", "gpu", "--threshold", 200, "--as", AYLA).code == 0
    assert changing("balance", "-r", "cpu", "--threshold", 200, "--as", AYLA).code == 5
    changing("alloc", "freeze", planned["id"], "--reason", "by mistake")
    changing("alloc", "thaw", planned["id"], "--reason", "thawed again")
    assert rows(changing, "balance", "--as", AYLA)["gpu", "planned"]["state_reason"] == "call 2027"
    changing("alloc", "thaw", 1, *WHY)
    changing("alloc", "end", 1, "--reason", "moved to another centre", "--yes")
    ended = changing("balance", "-r", "cpu", "--as", AYLA)
    assert "chem_qmc/cpu: ended 2026-11-21 07:30:12: moved to another centre" in ended.err
    # Staff see it only if they name the project.
    assert "chem_qmc" not in changing("balance", "-r", "cpu").out
    assert "chem_qmc" in changing("balance", "-r", "cpu", "-A", "chem_qmc").out


@pytest.mark.parametrize(
    ("end", "expires", "in_csv"),
    [
        ("2026-12-24", "2026-12-23", "2026-12-23"),
        ("2026-12-24T18:00", "2026-12-24 18:00", "2026-12-24T18:00:00-05:00"),
    ],
)
def test_expires_is_the_last_day_or_a_time(
    changing: Run, end: str, expires: str, in_csv: str
) -> None:
    """For programs the time has its zone."""
    changing("alloc", "set", 3, "--end", end, *WHY, "--yes")
    table = changing("balance", "-A", "bio_fold", "-o", "EXPIRES")
    assert table.out.splitlines()[-1] == expires
    table = changing("balance", "-A", "bio_fold", "-o", "EXPIRES", "--csv")
    assert table.out.splitlines()[-1] == in_csv


def test_refusal_says_what_is_held_and_until_when(fairbank: Run, changing: Run) -> None:
    """Job 812330 holds 128 SU. It started at 04:00 with a limit of 12 hours, so it ends by 16:00.
    The refused job 812350 asked for 384: 384 - 262 = 122 are missing.
    """
    words = ("not enough credit: requested 384 SU, available 262 SU, short by 122 SU. Of 5,000 SU"
        " 4,610 are used, 128 held by 1 running job, which ends by 2026-11-21 16:00:00 at the"
        " latest")  # fmt: skip
    refused = fairbank("jobs", "--refused", "--as", JORGE)
    assert f"Job 812350: {words}." in " ".join(refused.err.split())
    job = ("quote", "-A", "chem_qmc", "-p", "gpu-v100", "--gpus", 4, "-t", "4-00:00:00")
    quote = fairbank(*job, "--as", AYLA)
    assert f"available 262 SU does not fit: {words}" in " ".join(quote.out.split())
    in_json = "128 held by 1 running job, which ends by 2026-11-21T21:00:00Z at the latest"
    detail = json.loads(fairbank(*job, "--as", AYLA, "--json").out)["quote"]["detail"]
    assert in_json in detail
    hold = ("hold", 19, "-A", "chem_qmc", "-p", "gpu-v100", "-t", "1:00:00", "--amount", 384)
    held = changing(*hold, "-S", "2026-11-21T07:00:00")
    assert f"refused: {words}." in " ".join(held.err.split())
    assert in_json in json.loads(changing(*hold, "--json").out)["detail"]


def test_reason_of_a_grant_is_no_reason_of_its_end(changing: Run) -> None:
    """An allocation that was entered with a past period ended with that period."""
    term = ("--start", "2026-02-01", "--end", "2026-03-01")
    changing("alloc", "create", "-A", "bio_fold", "-r", "fpga", *term, "--reason", "entered late")
    text = changing("alloc", "list", "-A", "bio_fold", "-r", "fpga", "--json").out
    (row,) = json.loads(text)["data"]
    assert (row["state"], row["state_reason"]) == ("ended", None)
    assert row["state_since"] == row["end"]


def test_quote_says_since_when_and_why_an_allocation_cannot_be_used(changing: Run) -> None:
    job = ("quote", "-A", "bio_fold", "-t", 60, "--as", DANA, "-p")
    changing("alloc", "freeze", 3, "--reason", "audit of June")
    frozen = changing(*job, "gpu-v100", "--gpus", 1)
    assert (
        "available 0 SU does not fit: the allocation is frozen: requested 1 SU, available 0 SU."
        " Frozen since 2026-11-21 07:30:12: audit of June"
    ) in " ".join(frozen.out.split())
    changing("alloc", "thaw", 3, *WHY)
    changing(
        *("alloc", "create", "-A", "bio_fold", "-r", "cpu", "--category", "research"),
        *("--start", "2027-02-01", "--end", "2028-02-01", "--reason", "call 2027"),
    )
    planned = changing(*job, "idle-std", "-c", 1)
    assert "begins at 2027-02-01 00:00:00. Reason of the grant: call 2027" in " ".join(
        planned.out.split()
    )


def test_list_of_users_says_that_the_use_of_others_is_not_shown(
    clean_env: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with serve_site(SITE_VISIBLE_JOBS="own") as bank:
        clean_env.setenv("FAIRBANK_SERVER", bank.unix)
        fairbank = runner(main.run, capsys)
        shown = fairbank("alloc", "users", 1, "--as", JORGE)
        assert "use of others is not shown" in shown.out + shown.err
        assert "No user has used it" not in shown.out + shown.err
        assert "not shown" not in fairbank("alloc", "users", 1).err


def test_uids_of_a_refusal_are_shown_as_names(changing: Run) -> None:
    undo = ("undo", changing("deposit", 1, 5, *WHY).out.split()[1].rstrip(":"), *WHY, "--yes")
    changing(*undo)
    assert f"of user {own_name()}." in " ".join(changing(*undo).err.split())
