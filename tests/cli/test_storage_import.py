"""`fairbank storage import`: measured TiB-days, each project and day once.

A TiB-day costs 1 SU: 2.5 and 3 TiB-days are 5.5 SU, or 330 minutes. The grant of 730 SU over 365
days allows 2 TiB on average.
"""

from __future__ import annotations

import json
import time
from itertools import chain
from pathlib import Path

import pytest

from fairbank.cli.framework.exit_codes import FOUND, NOT_FOUND, WRONG_USAGE
from fairbank.core.ids import OVERFLOW_UID
from tests.cli.conftest import Run
from tests.cli.output_values import available, fold, output_of

USAGE = "account,day,tib_days\nchem_qmc,2026-11-18,2.5\nchem_qmc,2026-11-19,3\n"


@pytest.fixture(autouse=True)
def directory(clean_env: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    clean_env.chdir(tmp_path)
    (tmp_path / "usage.csv").write_text(USAGE)
    return tmp_path


def test_unknown_account_is_called_so(changing: Run, directory: Path) -> None:
    (directory / "usage.csv").write_text(USAGE.replace("chem_qmc", "chem_qcm"))
    left = changing("storage", "import", "usage.csv")
    assert "no active project has the account 'chem_qcm'" in fold(left.err)


def test_measured_storage_is_charged_once_and_compared_with_the_quota(
    changing: Run, directory: Path
) -> None:
    left = changing("storage", "import", "usage.csv")
    assert (left.code, "no allocation of storage" in fold(left.err)) == (FOUND, True)
    term = ("--start", "2026-01-01", "--end", "2027-01-01", "--amount", 730, "--reason", "x")
    opened = output_of(changing("alloc", "create", "-A", "chem_qmc", "-r", "storage", *term))
    number = int(opened.split("allocation ")[1].split(":")[0])
    planned = output_of(changing("storage", "import", "usage.csv", "--dry-run"))
    assert planned.startswith("storage: 2 measurements would be charged, price 5.50 SU; 0")
    assert available(changing, number) == 730 * 60
    done = output_of(changing("storage", "import", "usage.csv"))
    quota = "! over its quota: chem_qmc: 3.00 TiB on 2026-11-19, quota 2.00 TiB\nbank fairbank\n"
    assert done == f"storage: 2 measurements charged, 5.50 SU; 0 known already\n{quota}"
    assert available(changing, number) == 730 * 60 - 330
    again = output_of(changing("storage", "import", "usage.csv"))
    assert again == f"storage: 0 measurements charged, 0 SU; 2 known already\n{quota}"
    (directory / "usage.csv").write_text(USAGE.replace(",3", ",4"))
    other = changing("storage", "import", "usage.csv")
    assert (other.code, "another amount was charged" in fold(other.err)) == (FOUND, True)
    assert available(changing, number) == 730 * 60 - 330


def test_import_names_the_bank_that_answered(changing: Run) -> None:
    document = json.loads(changing("storage", "import", "usage.csv", "--dry-run", "--json").out)
    assert (document["bank"], document["as_of"]) == ("fairbank", "2026-11-21T12:30:12Z")


def test_measured_storage_is_no_job(changing: Run) -> None:
    """Nothing ran: usage counts no jobs, and the statement has the day of each measurement."""
    term = ("--start", "2026-01-01", "--end", "2027-01-01", "--amount", 5, "--reason", "x")
    opened = changing("alloc", "create", "-A", "bio_fold", "-r", "storage", *term)
    number = output_of(opened).split("allocation ")[1].split(":")[0]
    assert "no partition bills 'storage', so only measured use can be charged" in fold(opened.err)
    Path("usage.csv").write_text(
        "account,day,tib_days\nbio_fold,2026-11-18,3\nbio_fold,2026-11-19,2"
    )
    output_of(changing("storage", "import", "usage.csv"))
    usage = ("-r", "storage", "-S", "2026-11-01", "-P", "--noheader", "-o")
    shown = output_of(changing("usage", "-A", "bio_fold", "--by", "project", *usage, "JOBS,SU"))
    assert shown == "0|5\n"
    assert _centre_jobs(changing) == "0"
    reasons = output_of(changing("statement", number, "-P", "--noheader", "-o", "REASON"))
    assert "measured on 2026-11-18; 3 used" in reasons
    assert "measured on 2026-11-19; 2 used" in reasons
    Path("usage.csv").write_text("account,day,tib_days\nbio_fold,2026-11-20,7")
    assert "7 SU beyond the credit written off" in output_of(
        changing("storage", "import", "usage.csv", "--yes")
    )
    later = ("-S", "2026-11-20")
    words = ("usage", "-A", "bio_fold", "--by", "project", "-r", "storage", *later, *usage[4:])
    assert output_of(changing(*words, "JOBS,SU")) == "0|0\n"
    assert _centre_jobs(changing, *later) == "0"
    empty = fold(changing("balance", "-A", "bio_fold", "-r", "storage").err)
    assert "bio_fold/storage: empty; further use has no credit." in empty


def test_measured_storage_is_in_no_list_of_jobs(changing: Run) -> None:
    """Its charge has a row of the bank, with the number of the project, but nothing ran."""
    term = ("--start", "2026-01-01", "--end", "2027-01-01", "--amount", 9, "--reason", "x")
    opened = changing("alloc", "create", "-A", "bio_fold", "-r", "tape", *term)
    number = output_of(opened).split("allocation ")[1].split(":")[0]
    Path("usage.csv").write_text("account,day,tib_days\nbio_fold,2026-11-18,3")
    command = ("storage", "import", "usage.csv", "-r", "tape", "--system", "tape")
    output_of(changing(*command))
    for chosen in (("--alloc", number), ("-u", OVERFLOW_UID), ("-j", 2)):
        listed = changing("jobs", *chosen)
        assert (listed.out, "no job of this selection" in fold(listed.err)) == ("", True)
    assert "tape" not in changing("jobs", "-a", "-l", "--limit", "all").out
    assert output_of(changing("eff", 2), NOT_FOUND).startswith("fairbank: there is no job 2")
    columns = ("-P", "--noheader", "-o", "KIND,JOB/REF,OUT")
    assert "charge||3\n" in output_of(changing("statement", number, *columns))
    assert "1 known already" in output_of(changing(*command))  # the import finds it


def test_measured_storage_has_no_user(changing: Run) -> None:
    """Tables of users show `-` or nothing, not the name that the host has for the number."""
    term = ("--start", "2026-01-01", "--end", "2027-01-01", "--amount", 9, "--reason", "x")
    opened = changing("alloc", "create", "-A", "bio_fold", "-r", "optical", *term)
    number = output_of(opened).split("allocation ")[1].split(":")[0]
    Path("usage.csv").write_text("account,day,tib_days\nbio_fold,2026-11-18,3")
    output_of(changing("storage", "import", "usage.csv", "-r", "optical", "--system", "optical"))
    cells = ("-P", "--noheader", "-o")
    period = ("-r", "optical", "-S", "2026-11-01")
    assert output_of(changing("usage", "--by", "user", *period, *cells, "USER,SU")) == "-|3\n"
    assert output_of(changing("alloc", "users", number, *cells, "USER,USED")) == "|3\n"
    users = json.loads(output_of(changing("alloc", "users", number, "--json")))["data"]
    assert [(row["uid"], row["charged"]) for row in users] == [(None, 180)]
    entries = output_of(changing("statement", number, *cells, "KIND,OWNER")).splitlines()
    assert "charge|" in entries
    used = json.loads(output_of(changing("usage", "--by", "user", *period, "--json")))
    assert [(row["group"], row["name"]) for row in used["data"]] == [(None, "-")]
    stated = json.loads(output_of(changing("statement", number, "--json")))["data"]
    assert {row["owner_uid"] for row in stated if row["kind"] == "charge"} == {None}


def test_storage_systems_are_one_unit(changing: Run) -> None:
    """A TiB-day is 1 SU on each system, and no settings can have their capacity."""
    term = ("--start", "2026-01-01", "--end", "2027-01-01", "--amount", 730, "--reason", "x")
    output_of(changing("alloc", "create", "-A", "bio_fold", "-r", "disk", *term))
    for system in ("home", "scratch"):
        Path("usage.csv").write_text("account,day,tib_days\nbio_fold,2026-11-16,3")
        output_of(changing("storage", "import", "usage.csv", "--system", system, "-r", "disk"))
    for limit in ((), ("--limit", 1)):
        usage = ("usage", "-r", "disk", "--by", "cluster", "-S", "2026-11-01", *limit)
        rows = [line.split() for line in changing(*usage).out.splitlines()[-3:]]
        assert [(row[1], row[4], row[5]) for row in rows] == [
            ("disk", "3", "50.0%"),
            ("disk", "3", "50.0%"),
            ("disk", "6", "100.0%"),
        ]
    centre = changing("report", "centre", "-S", "2026-11-01")
    assert centre.out.count("disk") == 1
    assert "disk" not in fold(centre.err)
    notes = fold(changing("balance", "-A", "bio_fold").err)
    assert "1 SU of disk = 1 TiB for a day of measured use; no partition bills it." in notes


def _centre_jobs(changing: Run, *period: str) -> str:
    """Return the number of storage jobs that the report of the centre shows."""
    columns = ("-P", "--noheader", "-o", "RESOURCE,JOBS")
    shown = output_of(changing("report", "centre", *(period or ("-S", "2026-11-01")), *columns))
    return dict(row.split("|") for row in shown.splitlines())["storage"]


def test_measured_storage_counts_in_its_day_and_month(
    changing: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    term = ("--start", "2026-01-01", "--end", "2027-01-01", "--amount", 50, "--reason", "x")
    output_of(changing("alloc", "create", "-A", "bio_fold", "-r", "archive", *term))
    Path("usage.csv").write_text(
        "account,day,tib_days\nbio_fold,2026-10-30,1\nbio_fold,2026-10-31,10\nbio_fold,2026-11-01,3"
    )
    output_of(changing("storage", "import", "usage.csv", "-r", "archive", "--system", "archive"))
    usage = ("usage", "-A", "bio_fold", "-r", "archive", "-S", "2026-10-01", "-P", "--noheader")
    for zone in ("Pacific/Honolulu", "America/New_York", "UTC", "Europe/Rome", "Pacific/Auckland"):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        months = output_of(changing(*usage, "--by", "month", "-o", "MONTH,SU"))
        assert sorted(months.splitlines()) == ["2026-10|11", "2026-11|3"]
        days = output_of(changing(*usage, "--by", "day", "-o", "DAY,SU"))
        assert sorted(days.splitlines()) == ["2026-10-30|1", "2026-10-31|10", "2026-11-01|3"]


FILE = "field: FILE try: "
DAY = "field: day try: write 2026-11-21"
NUMBER = "field: tib_days try: a decimal number from 0 to 999999999, such as 12.5"
SYSTEM = (
    "is not the name of a storage field: --system try: 1 to 255 bytes of printable text without"
    " blanks , = / : @ or quotes"
)
RESOURCE = (
    "is not a resource field: -r try: a lower-case letter, then letters, digits, _ or -; at most"
    " 32 characters"
)


def check_refused(changing: Run, message: str, option: str = "-r", name: str = "pool") -> None:
    """Check the message, and that nothing was written although there is credit for the lines."""
    term = ("--start", "2026-01-01", "--end", "2027-01-01", "--amount", 730, "--reason", "x")
    changing("alloc", "create", "-A", "chem_qmc", "-r", "pool", *term)  # once, then refused
    names = chain.from_iterable({"--system": "pool", "-r": "pool", option: name}.items())
    command = ("storage", "import", "usage.csv", *names, "--yes")
    assert message in fold(output_of(changing(*command), WRONG_USAGE))
    left = changing("balance", "-A", "chem_qmc", "-r", "pool", "-P", "-n", "-o", "USED,AVAILABLE")
    assert left.out == "0|730\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", f"the file is empty {FILE}its first line names the columns"),
        (b" \n\n", f"the file is empty {FILE}its first line names the columns"),
        (
            b"account,day,tib_days\n\n",
            f"the file has no line after its header {FILE}export the lines",
        ),
        (
            USAGE.replace("tib_days", "day").encode(),
            f"the file has 2 columns 'day' {FILE}rename one of them in its first line",
        ),
        (
            USAGE.replace("tib_days", "TiB").encode(),
            "the file has no column 'tib_days' for the field tib_days; it has account, day, TiB"
            " field: --column try: name the column: --column tib_days=NAME",
        ),
        (USAGE.replace(",", ";").encode(), f"'account;day;tib_days' {FILE}name the delimiter: "),
        (USAGE.encode("utf-16"), f"is in UTF-16 {FILE}convert it: iconv -f UTF-16 -t UTF-8"),
        (
            USAGE.replace("chem", "chäm").encode("latin-1"),
            f"line 2 is not UTF-8: it has the byte 0xe4 {FILE}convert it, for example: iconv",
        ),
        (
            USAGE.replace(",3", "").encode(),
            f"line 3 has 2 cells, the header has 3 {FILE}quote cells that contain the delimiter",
        ),
        (USAGE.replace(",3", ',"3').encode(), f"line 3 is not CSV: unexpected end of data {FILE}"),
    ],
)
def test_wrong_file_is_refused_and_nothing_is_written(
    changing: Run, directory: Path, content: bytes, message: str
) -> None:
    (directory / "usage.csv").write_bytes(content)
    check_refused(changing, message)


def test_file_may_have_a_byte_order_mark(changing: Run, directory: Path) -> None:
    (directory / "usage.csv").write_text(USAGE.replace("chem", "nosuch"), encoding="utf-8-sig")
    left = fold(changing("storage", "import", "usage.csv").err)
    assert "no active project has the account 'nosuch_qmc'" in left


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--system", ""), SYSTEM),
        (("--system", "x" * 256), SYSTEM),
        (("--system", "tape 1"), SYSTEM),
        (("-r", ""), RESOURCE),
        (("-r", "x" * 33), RESOURCE),
        (("-r", "CPU"), RESOURCE),
    ],
)
def test_wrong_name_of_storage_is_refused_and_nothing_is_written(
    changing: Run, options: tuple[str, str], message: str
) -> None:
    check_refused(changing, message, *options)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("chem_qmc,19.11.2026,1", f"column day: '19.11.2026' is not a day {DAY}"),
        ("chem_qmc,2026-11-31,1", f"column day: '2026-11-31' is not a day {DAY}"),
        (
            "chem_qmc,2999-01-01,1",
            "column day: 2999-01-01 has not ended field: day try: list only days in the past",
        ),
        ("chem_qmc,2026-11-21,1", "column day: 2026-11-21 has not ended"),  # at the bank
        (
            "chem_qmc,2026-11-19,1",
            "column day: chem_qmc has this day on another line field: day try: add them up",
        ),
        ('chem_qmc,2026-11-17,"1,250"', f"tib_days: '1,250' is not a number of TiB-days {NUMBER}"),
        ("chem_qmc,2026-11-17,nan", f"tib_days: 'nan' is not a number of TiB-days {NUMBER}"),
        ("chem_qmc,2026-11-17,-1", f"tib_days: '-1' is not a number of TiB-days {NUMBER}"),
        ("chem_qmc,2026-11-17,9999999999", f"'9999999999' is not a number of TiB-days {NUMBER}"),
        ("chem_qmc,2026-11-17,", "column tib_days: the cell is empty field: tib_days try: every"),
    ],
)
def test_wrong_line_is_named_and_nothing_is_written(
    changing: Run, directory: Path, line: str, message: str
) -> None:
    (directory / "usage.csv").write_text(f"{USAGE}{line}\n")
    check_refused(changing, message)
    assert "line 4, column " in fold(changing("storage", "import", "usage.csv").err)


def test_import_names_what_was_charged_and_what_was_written_off(
    changing: Run, directory: Path
) -> None:
    """Of 4,000 TiB-days 3,950 exceed the grant of 50 SU, and of the next day all."""
    term = ("--start", "2026-01-01", "--end", "2027-01-01", "--amount", 50, "--reason", "x")
    output_of(changing("alloc", "create", "-A", "chem_qmc", "-r", "scratch", *term))
    command = ("storage", "import", "usage.csv", "--system", "scratch", "-r", "scratch")
    line = "chem_qmc,2026-11-18,4000\n"
    (directory / "usage.csv").write_text(f"account,day,tib_days\n{line}")
    refused = fold(output_of(changing(*command), WRONG_USAGE))
    question = "Charge 1 measurement of scratch, price 4,000 SU, 3,950 SU beyond the credit?"
    (planned,) = json.loads(output_of(changing(*command, "--json", "--dry-run")))["data"]
    assert (planned["beyond_credit"], planned["written_off"]) == (237_000, None)
    assert f"nothing was changed: {question} field: --yes try: add --yes" in refused
    (row,) = json.loads(output_of(changing(*command, "--json", "--yes")))["data"]
    assert (row["cost"], row["charged"], row["written_off"]) == (240_000, 3_000, 237_000)
    assert row["beyond_credit"] == 237_000
    assert row["display"]["written_off"] == "3950"
    assert row["quotas"][0]["is_over"]
    (directory / "usage.csv").write_text(f"account,day,tib_days\n{line.replace('18', '19')}")
    assert output_of(changing(*command, "--yes")).startswith(
        "scratch: 1 measurement charged, 0 SU, 4,000 SU beyond the credit written off; 0 known"
    )


def test_name_of_a_cluster_is_no_storage(changing: Run) -> None:
    """`reconcile` would list the charges as runs that accounting does not know."""
    for dry_run in ((), ("--dry-run",)):
        command = ("storage", "import", "usage.csv", "--system", "darwin", *dry_run)
        error = fold(output_of(changing(*command), WRONG_USAGE))
        assert "'darwin' is a cluster of the bank's settings field: --system try: a name" in error


def test_quota_is_compared_with_a_day_of_its_grant(changing: Run, directory: Path) -> None:
    """The grant of 90 SU over 9 days allows 10 TiB; it ends before the last day of the file."""
    term = ("--start", "2026-11-02", "--end", "2026-11-11", "--amount", 90, "--reason", "x")
    output_of(changing("alloc", "create", "-A", "chem_qmc", "-r", "archive", *term))
    (directory / "usage.csv").write_text(
        "account,day,tib_days\n"
        "chem_qmc,2026-11-14,50\nchem_qmc,2026-11-09,3\nchem_qmc,2026-11-08,30\n"
    )
    result = changing("storage", "import", "usage.csv", "--system", "tape", "-r", "archive")
    assert (result.code, "chem_qmc, 2026-11-14: there was no" in fold(result.err)) == (FOUND, True)
    assert result.out.splitlines()[1] == "chem_qmc: 3.00 TiB on 2026-11-09, quota 10.00 TiB"


def test_use_of_all_storages_of_a_grant_counts_against_its_quota(
    changing: Run, directory: Path
) -> None:
    """365 SU over 365 days allow 1 TiB: 0.75 TiB on each of two systems is above it."""
    term = ("--start", "2026-01-01", "--end", "2027-01-01", "--amount", 365, "--reason", "x")
    output_of(changing("alloc", "create", "-A", "chem_qmc", "-r", "lake", *term))
    (directory / "usage.csv").write_text("account,day,tib_days\nchem_qmc,2026-11-18,0.75\n")
    command = ("storage", "import", "usage.csv", "-r", "lake", "--system")
    first = output_of(changing(*command, "lake1"))
    assert first.startswith("lake1 (lake): 1 measurement charged, 0.75 SU; 0 known already\n")
    assert "\nchem_qmc: 0.75 TiB on 2026-11-18, quota 1.00 TiB\n" in first
    both = output_of(changing(*command, "lake2"))
    over = "! over its quota: chem_qmc: 1.50 TiB on 2026-11-18, 0.75 TiB of it on other storage"
    assert over in both
    again = changing(*command, "lake1", "--json")
    (row,) = json.loads(output_of(again))["data"]
    assert (row["system"], row["resource"]) == ("lake1", "lake")
    (quota,) = row["quotas"]
    assert (quota["tib"], quota["elsewhere_tib"], quota["is_over"]) == (1.5, 0.75, True)


def test_refusal_to_undo_measured_storage_names_the_command_that_refunds_it(changing: Run) -> None:
    """The number of the project stands for the job of the charge, but may be that of a real job."""
    term = ("--start", "2026-01-01", "--end", "2027-01-01", "--amount", 9, "--reason", "x")
    opened = changing("alloc", "create", "-A", "bio_fold", "-r", "vault", *term)
    number = output_of(opened).split("allocation ")[1].split(":")[0]
    Path("usage.csv").write_text("account,day,tib_days\nbio_fold,2026-11-18,3")
    output_of(changing("storage", "import", "usage.csv", "-r", "vault", "--system", "archive"))
    shown = changing("statement", number, "-P", "--noheader", "-o", "KIND,ENTRY")
    entry = output_of(shown).split("charge|")[1].split()[0]
    refused = fold(changing("undo", entry, "--reason", "x").err)
    refund = refused.split("refund it: fairbank ")[1].split(" --reason")[0]
    refunded = output_of(changing(*refund.split(), "--reason", "measured twice", "--yes"))
    assert " SU of use of " in fold(refunded)
    assert " measured on 2026-" in fold(refunded)
    assert "job" not in refunded
    assert available(changing, int(number)) == 9 * 60
