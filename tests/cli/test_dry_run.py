"""Tests of `--dry-run`: every command that writes shows the result of the real run and gets the
same refusals.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fairbank.core.units import AMOUNTS
from fairbank.rest.client import Client, parse_address
from tests.cli.conftest import Run
from tests.cli.output_values import available, entry_number, output_of
from tests.cli.served_site import Bank
from tests.cli.site import AYLA, BIO, CHEM, CPU, DANA, FOLD, GPU, JORGE, MINH, STRANGER
from tests.cli.test_conventions import WRITING

pytestmark = pytest.mark.usefixtures("changing")
X = ("--reason", "x")
LAB = "labdry"


class LedgerReader:
    """Content of the site's ledger, read without writing to it."""

    def __init__(self, bank: Bank) -> None:
        self._client = Client(parse_address(bank.unix))

    def heads(self) -> object:
        """Return the last link of every chain and the number of entries."""
        return self._client.get("/audit", {"limit": 1_000})["data"]

    def entries(self) -> int:
        result: Any = self.heads()
        return int(result["entries"])


@pytest.fixture
def ledger(own_bank: Bank) -> LedgerReader:
    return LedgerReader(own_bank)


@pytest.fixture(scope="module")
def prepared_sites() -> set[str]:
    """Names of the sites that already have the content of `LAB`."""
    return set()


@pytest.fixture(autouse=True)
def lab_project(changing: Run, prepared_sites: set[str], own_bank: Bank) -> None:
    """Make an unused project, a removed one, an allocation after FOLD, a frozen one and an ended
    one.
    """
    if own_bank.unix not in prepared_sites:
        prepared_sites.add(own_bank.unix)
        output_of(changing("project", "create", LAB, "--gid", 50_070, "--parent", "chem_qmc"))
        output_of(changing("project", "create", "gone", "--gid", 50_071))
        output_of(changing("project", "remove", "gone", "--yes"))
        output_of(
            changing(
                "alloc",
                "create",
                "-A",
                "bio_fold",
                "-r",
                "gpu",
                "--start",
                "2028-01-01",
                "--end",
                "2029-01-01",
                *X,
            )
        )
        output_of(
            changing(
                "alloc",
                "create",
                "-A",
                "bio_fold",
                "-r",
                "cpu",
                "--start",
                "2026-01-01",
                "--end",
                "2029-01-01",
                *X,
            )
        )
        output_of(changing("alloc", "freeze", FROZEN, *X))


LATER, FROZEN = 4, 5
JOB = ("-A", "chem_qmc", "-M", "darwin", "-p", "idle-std", "-t", "60", "--tres", "cpu=1")

REFUSED: tuple[tuple[tuple[object, ...], int, str], ...] = (
    (("deposit", CPU, 1, *X, "--as", JORGE), 4, "you may not deposit here"),
    (("deposit", CPU, 1, *X, "--as", DANA), 3, f"there is no allocation {CPU}"),
    (("withdraw", GPU, 9_999_999, *X), 5, "not enough unused credit"),
    (("transfer", GPU, FOLD, 9_999_999, *X), 5, "not enough unused credit"),
    (("transfer", CPU, GPU, 1, *X), 7, "credit moves only between allocations of one resource"),
    (("transfer", GPU, FOLD, 1, *X, "--as", AYLA), 3, f"there is no allocation {FOLD}"),
    (("refund", 701_002, 601, *X, "--as", AYLA), 4, "you may not refund here"),
    (("refund", 701_002, 99_999, *X), 5, "left of its charge"),
    (("refund", 701_002, 1, *X, "--as", STRANGER), 3, "there is no job 701002"),
    (("undo", 999_999, *X), 3, "there is no entry 999999"),
    (
        ("alloc", "create", "-A", "chem_qmc", "-r", "cpu", "--end", "2027-09-01", *X),
        7,
        "at the same time",
    ),
    (("alloc", "create", "-A", "gone", "-r", "cpu", "--end", "2027-09-01", *X), 7, "was removed"),
    (
        (
            "alloc",
            "create",
            "-A",
            "chem_qmc",
            "-r",
            "fpga",
            "--end",
            "2027-09-01",
            *X,
            "--as",
            AYLA,
        ),
        4,
        "you may not make allocations here",
    ),
    (
        ("alloc", "create", "-A", "chem_qmc", "-r", "Not A Name", "--end", "2027-09-01", *X),
        2,
        "resource",
    ),
    (("alloc", "set", FOLD, "--end", "2028-06-01", *X), 7, "at the same time"),
    (
        ("alloc", "set", FOLD, "--shared", *X, "--as", DANA),
        4,
        "you may not change allocations here",
    ),
    (("alloc", "extend", FOLD, "2028-06-01", *X), 7, "at the same time"),
    (("alloc", "freeze", FROZEN, *X), 7, "is frozen already"),
    (("alloc", "freeze", FOLD, *X, "--as", AYLA), 3, f"there is no allocation {FOLD}"),
    (("alloc", "thaw", CPU, *X), 7, "is active already"),
    (("alloc", "reopen", CPU, *X), 7, "is active already"),
    (("alloc", "end", 999, *X), 3, "there is no allocation 999"),
    (("alloc", "end", CPU, *X, "--as", AYLA), 4, "you may not change allocations here"),
    (("alloc", "remove", CPU), 7, f"credit has moved in allocation {CPU}"),
    (("alloc", "cap", CPU, AYLA, 5, "--as", AYLA), 4, "users manage only roles below their own"),
    (("alloc", "cap", CPU, MINH, 5, "--as", JORGE), 4, "you may not cap users here"),
    (("project", "create", "other", "--gid", 50_070), 7, "has gid 50070"),
    (("project", "create", "gone", "--gid", 50_079), 7, "was removed"),
    (
        ("project", "create", "other", "--gid", 50_079, "--as", AYLA),
        4,
        "you may not enter projects here",
    ),
    (("project", "create", "no,name", "--gid", 50_079), 2, "not a name"),
    (("project", "set", LAB, "--gid", 50_071), 7, "has gid 50071"),
    (("project", "set", "chem_qmc", "-A", "chem"), 7, "ever had an allocation"),
    (("project", "set", "chem_qmc", "--parent", LAB), 7, "or below it"),
    (("project", "set", LAB, "--no-parent", "--as", AYLA), 3, LAB),
    (("project", "remove", "chem_qmc"), 7, "the project is still in use"),
    (
        ("project", "remove", "chem_qmc", "--as", AYLA),
        4,
        "you may not change or remove projects here",
    ),
    (("project", "remove", BIO, "--as", AYLA), 3, "there is no project"),
    (("project", "add-user", "gone", AYLA), 7, "was removed"),
    (
        ("project", "add-user", "chem_qmc", DANA, "--as", JORGE),
        4,
        "you may not add or remove members here",
    ),
    (("project", "add-user", CHEM, DANA, "--as", DANA), 3, "there is no project"),
    (("project", "remove-user", "chem_qmc", STRANGER), 3, f"user {STRANGER} in project {CHEM}"),
    (("token", "create", "x", "--scopes", "wrong"), 2, "'wrong' is not a scope"),
    (("token", "create", "x", "--days", 9_999), 2, "days"),
    (("token", "create", "x", "--as", AYLA), 4, "tokens are not made while acting as another user"),
    (("token", "revoke", 999), 3, "there is no valid token 999"),
    (("hold", 901, *JOB, "--as", JORGE), 4, "you may not report runs of cluster darwin"),
    (("hold", 901, *JOB[:4], "-p", "nowhere", *JOB[6:]), 3, "there is no partition 'nowhere'"),
    (("hold", 812_330, *JOB), 7, "this run already has a hold with other figures"),
    (("charge", 812_301, "--amount", "1"), 7, "already"),
    (("release", 812_301), 7, "already"),
)


def command_of(words: tuple[object, ...]) -> str:
    return (
        " ".join(map(str, words[:2]))
        if words[0] in ("alloc", "project", "token")
        else str(words[0])
    )


def test_every_write_command_has_a_dry_run_test() -> None:
    assert {command_of(words) for words, *_ in REFUSED} == WRITING
    assert {command_of(words) for words, _ in ALLOWED} == WRITING - {"undo"}  # tested below


@pytest.mark.parametrize(
    ("words", "code", "message"),
    REFUSED,
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_dry_run_is_refused_with_the_message_of_the_real_run(
    changing: Run, ledger: LedgerReader, words: tuple[object, ...], code: int, message: str
) -> None:
    before = ledger.heads()
    dry = changing(*words, "--dry-run")
    assert (
        "--as" in words or ledger.heads() == before
    )  # acting as another user is always journalled
    real = changing(*words, "--yes")
    assert (dry.code, dry.out, dry.err) == (real.code, "", real.err) == (code, "", dry.err)
    assert message in " ".join(dry.err.split())


ALLOWED: tuple[tuple[tuple[object, ...], list[str]], ...] = (
    (("deposit", GPU, 10, *X), ["deposit"]),
    (("withdraw", GPU, 10, *X), ["withdraw"]),
    (("transfer", FOLD, GPU, "10.5", *X), ["transfer-out", "transfer-in"]),
    (("refund", 701_001, 3, *X), ["refund"]),
    (("refund", 701_001, *X), ["refund"]),
    (
        (
            "alloc",
            "create",
            "-A",
            LAB,
            "-r",
            "gpu",
            "--end",
            "2027-09-01",
            "--amount",
            7,
            "--credit-limit",
            3,
            *X,
        ),
        ["open", "deposit"],
    ),
    (
        (
            "alloc",
            "create",
            "-A",
            LAB,
            "-r",
            "cpu",
            "--start",
            "2028-01-01",
            "--end",
            "2028-09-01",
            "--shared",
            *X,
        ),
        ["open"],
    ),
    (("alloc", "set", LATER, "--credit-limit", 5, "--shared", *X), ["terms"]),
    (("alloc", "extend", LATER, "2029-06-01", *X), ["terms"]),
    (("alloc", "thaw", FROZEN, *X), ["terms"]),
    (("alloc", "freeze", FROZEN, *X), ["terms"]),
    (("alloc", "end", FROZEN, *X), ["terms"]),
    (("alloc", "reopen", FROZEN, "--end", "2029-01-01", *X), ["terms"]),
    (("alloc", "remove", FROZEN), ["terms"]),
    (("alloc", "cap", CPU, MINH, 100), ["cap"]),
    (("alloc", "cap", CPU, MINH, "none", *X), ["cap"]),
    (("project", "create", "fresh", "--gid", 50_072), ["project"]),
    (
        ("project", "set", "fresh", "--gid", 50_073, "-A", "fresher", "--parent", "chem_qmc", *X),
        ["project"],
    ),
    (("project", "set", "gone", "--restore", *X), ["project"]),
    (("project", "remove", "gone"), ["project"]),
    (("project", "add-user", "chem_qmc", DANA, "--role", "coordinator"), ["member"]),
    (("project", "remove-user", "chem_qmc", DANA), ["member"]),
    (("token", "create", "x", "--scopes", "read,write", "--days", 3), ["token"]),
    (("token", "revoke", 1), ["token"]),
    (("hold", 901, *JOB, "--reason", "by hand"), ["hold"]),
    (("charge", 812_344), ["charge"]),
    (("charge", 812_300, "--amount", 3, *X), ["charge"]),
    (("release", 812_330, *X), ["release"]),
)


@pytest.mark.parametrize(("words", "kinds"), ALLOWED, ids=lambda value: " ".join(map(str, value)))
def test_dry_run_shows_changes_and_writes_nothing(
    changing: Run, ledger: LedgerReader, words: tuple[object, ...], kinds: list[str]
) -> None:
    heads = ledger.heads()
    shown = output_of(changing(*words, "--dry-run"))
    rows = json.loads(output_of(changing(*words, "--dry-run", "--json")))
    assert ledger.heads() == heads
    assert shown.splitlines()[1] == "Nothing is changed. This would be posted:"
    assert (rows["schema"], [row["kind"] for row in rows["data"]]) == (
        "fairbank.planned-entry/1",
        kinds,
    )
    before = ledger.entries()
    done = json.loads(output_of(changing(*words, "--yes", "--json")))["data"]
    assert ledger.entries() == before + len(rows["data"])
    last = rows["data"][0] if kinds[0] == "transfer-out" else rows["data"][-1]
    assert last["available"] in (None, done.get("remaining", done.get("available")))
    for same in {"account", "resource"} & done.keys():
        assert last[same] == done[same]
    if kinds[0] not in ("project", "member", "token"):
        number = done.get("id", done.get("allocation"))
        written = json.loads(
            output_of(changing("statement", number, "-l", "--limit", "all", "--json"))
        )["data"][-1]
        for same in (
            "deposited",
            "charged",
            "held",
            "credit_limit",
            "available",
            "comment",
            "kind",
        ):
            assert written[same] == last[same], same


def dry_run_line(changing: Run, *words: object) -> str:
    """Return the single line of a dry run's table, its spaces folded."""
    return " ".join(output_of(changing(*words, "--dry-run")).splitlines()[-1].split())


def test_dry_run_table_describes_the_entry(changing: Run) -> None:
    assert dry_run_line(
        changing, "alloc", "set", LATER, "--start", "2028-02-01T00:00Z", "--not-shared", *X
    ).startswith(f"terms {LATER} bio_fold gpu ")
    assert "start 2028-01-31 19:00:00" in dry_run_line(
        changing, "alloc", "set", LATER, "--start", "2028-02-01T00:00Z", *X
    )
    assert "uid 61003, cap 5 SU" in dry_run_line(changing, "alloc", "cap", GPU, MINH, 5).replace(
        "cap 5 SU, uid 61003", "uid 61003, cap 5 SU"
    )
    assert dry_run_line(
        changing, "project", "add-user", "bio_fold", MINH, "--role", "pi"
    ).startswith("member bio_fold project 2, uid 61003, role pi")
    assert dry_run_line(changing, "project", "create", "nothing", "--gid", 9).startswith(
        "project nothing gname nothing, gid 9, account nothing"
    )
    line = dry_run_line(
        changing,
        "alloc",
        "create",
        "-A",
        LAB,
        "-r",
        "tape",
        "--start",
        "2028-01-01",
        "--end",
        "2028-09-01",
        *X,
    )
    assert line.startswith(f"open {LAB} tape 0 category research, start 2028-01-01")
    assert "job 701002, cluster darwin" in dry_run_line(changing, "refund", 701_002, 1, *X)
    assert "label x, scopes read,write, expires 20" in dry_run_line(
        changing, "token", "create", "x", "--scopes", "write,read"
    )


def test_dry_run_of_an_applied_request_posts_nothing(changing: Run) -> None:
    keyed = ("deposit", GPU, 1, *X, "--idempotency-key", "dry-17")
    output_of(changing(*keyed))
    output_of(changing("project", "add-user", "chem_qmc", 4_713))
    for words in (
        keyed,
        ("project", "add-user", "chem_qmc", 4_713),
        ("project", "create", LAB, "--gid", 50_070, "--parent", "chem_qmc"),
    ):
        result = changing(*words, "--dry-run")
        assert output_of(result) == ""
        assert (
            "Nothing would be posted: this was carried out before, or is so already."
            in " ".join(result.err.split())
        )
        assert json.loads(output_of(changing(*words, "--dry-run", "--json")))["data"] == []
    output_of(changing("withdraw", GPU, 1, "--reason", "back", "--yes"))


def test_dry_run_lists_the_entries_of_a_transfer(changing: Run) -> None:
    left = {number: available(changing, number) for number in (GPU, FOLD)}
    rows = json.loads(
        output_of(changing("transfer", FOLD, GPU, "10.5", *X, "--dry-run", "--json"))
    )["data"]
    assert [
        (row["kind"], row["allocation"], row["account"], row["amount"], row["available"])
        for row in rows
    ] == [
        ("transfer-out", FOLD, "bio_fold", 630, left[FOLD] - 630),
        ("transfer-in", GPU, "chem_qmc", 630, left[GPU] + 630),
    ]


def test_change_without_an_allocation_has_no_amounts(changing: Run) -> None:
    user = f"amountless {MINH}"
    for words in (
        "create amountless --gid 50072",
        "set amountless --parent chem_qmc",
        f"add-user {user}",
        f"remove-user {user} --yes",
        "remove amountless --yes",
    ):
        command = ("project", *words.split(), "--json")
        (planned,) = json.loads(output_of(changing(*command, "--dry-run")))["data"]
        done = json.loads(output_of(changing(*command)))["data"]
        for row in (planned, done):
            amounts = {name: row[name] for name in AMOUNTS.intersection(row)}
            assert set(amounts.values()) <= {None}, (words, amounts)
            assert not row.get("display")
        assert {"amount", "available", "deposited"} <= planned.keys()


def test_dry_run_of_a_token_checks_but_writes_no_file(changing: Run, tmp_path: Path) -> None:
    taken, free = tmp_path / "there", tmp_path / "free"
    taken.touch()
    words = ("token", "create", "x", "--output")
    assert changing(*words, taken, "--dry-run").err == changing(*words, taken).err != ""
    assert "secret" not in output_of(changing(*words, free, "--dry-run"))
    assert not free.exists()


def test_dry_run_of_undo_reports_everything(changing: Run, ledger: LedgerReader) -> None:
    number = entry_number(changing("alloc", "cap", CPU, JORGE, 5))
    heads = ledger.heads()
    assert f"cap none, undoes {number}" in dry_run_line(changing, "undo", number, *X).replace(
        ", uid 61002", ""
    )
    assert ledger.heads() == heads
    output_of(changing("undo", number, *X))
