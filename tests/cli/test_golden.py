"""Output of commands, compared with the files in tests/golden/cli. After an intended change, run
`WRITE_GOLDEN=1 pytest tests/cli/test_golden.py` and read the diff.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import CommandResult, Run, session
from tests.cli.served_site import Bank
from tests.cli.test_queue import whole_queue
from tests.cli.test_why_at_slurm import renamed_queue
from tests.support.fairshare_recordings import printed
from tests.support.golden import GOLDEN, kept

FOLDER = GOLDEN / "cli"

STORIES = {
    "overview": "fairbank --as 61001",
    "overview-of-a-stranger": "fairbank --as 61009",
    "balance": "fairbank balance --as 61002",
    "balance-capped": "fairbank balance --as 61003",
    "balance-long": "fairbank balance --as 61002 --long",
    "balance-threshold": "fairbank balance -A chem_qmc --threshold 10k",
    "balance-json": "fairbank balance -A bio_fold --json",
    "balance-csv": "fairbank balance --csv --as 61002",
    "balance-parsable": "fairbank balance -P -n --units m --as 61002",
    "balance-columns": "fairbank balance -o +ALLOC,+PACE-PER-DAY --as 61001 -v",
    "usage": "fairbank usage -A chem_qmc -S 2026-07-01 --as 61001",
    "usage-by-month": "fairbank usage -A chem_qmc -r cpu -S 2026-07-01 --by month --csv",
    "usage-by-day": "fairbank usage --by day -S 2026-11-01 --as 61001",
    "usage-by-project": "fairbank usage -S 2026-07-01 --by project --limit 1",
    "eff": "fairbank eff 812301,700004,702001",
    "report-centre": "fairbank report centre -S 2026-07-01 -E 2026-08-01",
    "statement": "fairbank statement 1 -S 2026-11-20T18:00 --as 61001",
    "statement-newest": "fairbank statement 2 -S 2026-06-01 --limit 2 --as 61001",
    "statement-long": "fairbank statement 2 -S 2026-06-01 -l --as 61001",
    "statement-csv": "fairbank statement 1 -S 2026-11-20T18:00 --csv -l --as 61001",
    "jobs": "fairbank jobs -A chem_qmc --as 61001",
    "jobs-running": "fairbank jobs --running --as 61001",
    "jobs-refused": "fairbank jobs --refused --as 61002",
    "quote": "fairbank quote -A chem_qmc -p idle-std -c 8 --mem 64G -t 12:00:00 --as 61001",
    "quote-too-dear": "fairbank quote -A chem_qmc -p gpu-v100 --gpus 4 -t 4-00:00:00 --as 61002",
    "alloc-list": "fairbank alloc list --as 61001",
    "alloc-show": "fairbank alloc show 2 --as 61001",
    "alloc-users": "fairbank alloc users 2 --as 61001",
    "project-list": "fairbank project list --as 61002",
    "project-show": "fairbank project show chem_qmc --as 61001",
    "deposit-dry-run": 'fairbank deposit 1 500 --reason "committee 2026-11" --dry-run',
    "transfer-dry-run": "fairbank transfer 3 2 500 --reason joint --dry-run --json",
    "withdraw-refused": "fairbank withdraw 2 10k --reason test --yes",
    "not-found": "fairbank alloc show 99",
    "did-you-mean": "fairbank balanse",
    "help": "fairbank --help",
    "help-balance": "fairbank balance --help",
    "help-alloc": "fairbank alloc --help",
    "help-deposit": "fairbank deposit --help",
    "sproject-allocations": "sproject allocations -g chem_qmc --detail --sort -BALANCE",
    "sproject-jobs": "sproject jobs -a -r cpu -u 61001",
    "sproject-failures": "sproject failures --csv",
    "sproject-projects": "sproject projects --json",
}
OF_FILES = {
    "queue": "fairbank queue --from live --utc",
    "why-refused": "fairbank why 812350 --from queue --utc",
    "why-running": "fairbank why 812344 --from queue --utc",
    "why-ended": "fairbank why 812301 --from queue --utc",
    "prio-explain": "fairbank prio --explain -j 6 --from waiting --utc",
    "share-tree": "fairbank share --tree -a -A wg_bio,physics --from shares --utc",
    "share-forecast": "fairbank share --forecast -a -A wg_bio,physics --from shares --utc",
    "share-forecast-run": "fairbank share --forecast -A lasers --pause 1week --run 2 --from shares",
    "report-usage": "fairbank report usage figures -S 2026-07-01 -E 2026-10-01",
    "report-balance": "fairbank report balance figures -A chem_qmc",
    "import-csv": "fairbank import csv jobs.csv --dry-run --utc",
    "import-csv-wrong": "fairbank import csv wrong.csv --dry-run --utc",
    "storage-import": "fairbank storage import tib.csv --system tape -r cpu --dry-run",
    "storage-import-wrong": "fairbank storage import jobs.csv",
}
"""Commands that read files in their directory: recordings of Slurm, and tables."""
STORIES |= OF_FILES
ANY_WIDTH = {"--csv", "--json", "-P", "--help", "--long"}
"""Options with which a terminal may have any width."""
STORIES |= {
    f"{name}-at-120-columns": f"COLUMNS=120 {line}"
    for name, line in STORIES.items()
    if not ANY_WIDTH.intersection(line.split())
}
NOT_FOLDED = {"--csv", "--json", "-P", "--long", "-l", "deposit", "transfer", "COLUMNS=120"}
JOBS_CSV = """job_id,user,account,partition,start,end,cpus,memory
703,root,chem_qmc,idle-std,2026-11-20T08:00Z,2026-11-20T09:30Z,4,16G
704,root,chem_qmc,idle-std,2026-11-20T08:00Z,2026-11-20T09:30Z,2,
705,root,bio_fold,idle-std,2026-11-20T08:00Z,2026-11-20T09:30Z,2,
"""
TIB_CSV = "account,day,tib_days\nchem_qmc,2026-11-18,2.5\nchem_qmc,2026-11-19,300\n"


@pytest.fixture
def directory(clean_env: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return the directory of a command, with what OF_FILES names."""
    (tmp_path / "waiting").symlink_to(GOLDEN / "slurm-22.05" / "waiting")
    renamed_queue(tmp_path / "queue")
    whole_queue(tmp_path / "live")
    (tmp_path / "shares").mkdir()
    (tmp_path / "shares" / "sshare.txt").write_text(printed("fair-tree", "sshare-everything"))
    (tmp_path / "shares" / "config.txt").write_text(printed("fair-tree", "config"))
    (tmp_path / "jobs.csv").write_text(JOBS_CSV)
    (tmp_path / "wrong.csv").write_text(JOBS_CSV.replace("2026-11-20T08:00Z", "20.11.2026"))
    (tmp_path / "tib.csv").write_text(TIB_CSV)
    clean_env.chdir(tmp_path)
    return tmp_path


def golden_text(result: CommandResult, command: str, bank: Bank) -> str:
    """Return the text of a session: the command, its output, its stderr and its exit code."""
    return session(command, result).replace(bank.unix, "unix:/run/fairbank/fairbank.sock")


@pytest.mark.usefixtures("directory")
@pytest.mark.parametrize("name", STORIES)
def test_output_matches_the_golden_file(
    name: str, fairbank: Run, hadm: Run, bank: Bank, clean_env: pytest.MonkeyPatch
) -> None:
    clean_env.setenv("FAIRBANK_CLUSTER", "darwin")
    program, *words = shlex.split(STORIES[name])
    if program == "COLUMNS=120":
        clean_env.setenv("COLUMNS", "120")
        program, *words = words
    text = golden_text((hadm if program == "sproject" else fairbank)(*words), STORIES[name], bank)
    assert text == kept(FOLDER / f"{name}.txt", text)


def test_every_golden_file_has_a_test() -> None:
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(STORIES)


@pytest.mark.parametrize(
    "name", [name for name, lines in STORIES.items() if not NOT_FOLDED.intersection(lines.split())]
)
def test_eighty_columns_are_enough(name: str) -> None:
    lines = (FOLDER / f"{name}.txt").read_text().splitlines()[1:]
    assert [line for line in lines if len(line) > 80] == []


@pytest.mark.parametrize("name", [name for name in STORIES if name.endswith("-120-columns")])
def test_wide_terminals_are_not_exceeded(name: str) -> None:
    lines = (FOLDER / f"{name}.txt").read_text().splitlines()[1:]
    assert [line for line in lines if len(line) > 120] == []
