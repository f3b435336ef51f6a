"""Output on a real terminal: widths, colours, questions and termination."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import Protocol

import pytest

from tests.cli.conftest import Run
from tests.cli.output_values import entry_number
from tests.cli.served_site import Bank
from tests.support.conditions import wait_until

START = "import sys; from fairbank.cli.main import run; sys.exit(run(sys.argv[1:]))"
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Addressed(Protocol):
    """Bank with an address."""

    @property
    def unix(self) -> str: ...


class Terminal:
    """Command that runs on a terminal of a given size."""

    def __init__(
        self, bank: Addressed, *words: str, columns: int = 80, lines: int = 24, **environment: str
    ) -> None:
        self.screen, child_end = pty.openpty()
        fcntl.ioctl(child_end, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        clean_env = {
            name: value
            for name, value in os.environ.items()
            if name not in ("COLUMNS", "LINES", "NO_COLOR")
        }
        clean_env |= {
            "FAIRBANK_SERVER": bank.unix,
            "TZ": "America/New_York",
            "HOME": "/nowhere",
            "PAGER": "",
            "TERM": "xterm",
        }
        self.process = subprocess.Popen(
            [sys.executable, "-c", START, *words],
            env={
                **clean_env,
                "FAIRBANK_SERVER": bank.unix,
                "TZ": "America/New_York",
                "HOME": "/nowhere",
                "PAGER": "",
                "TERM": "xterm",
                **environment,
            },
            stdin=child_end,
            stdout=child_end,
            stderr=child_end,
            start_new_session=True,
        )
        os.close(child_end)
        self.output = ""

    def read(self) -> str:
        """Return the output so far."""
        while select.select([self.screen], [], [], 0)[0]:
            try:
                self.output += os.read(self.screen, 65_536).decode()
            except OSError:  # the other end is closed
                break
        return self.output

    def type(self, words: str) -> None:
        os.write(self.screen, words.encode())

    def end(self) -> tuple[int, list[str]]:
        """Return the exit code and the lines on the screen."""
        wait_until(lambda: (self.read(), self.process.poll() is not None)[1], "the command to end")
        self.read()
        os.close(self.screen)
        return self.process.returncode, self.output.replace("\r\n", "\n").splitlines()


@pytest.mark.parametrize("columns", [80, 120, 140])
def test_every_line_fits_the_terminal(bank: Bank, columns: int) -> None:
    period = "-S 2026-01-01"
    for words in (
        "--as 61002",
        "balance",
        "jobs -a",
        "jobs --refused -a",
        f"statement 1 {period}",
        f"statement 2 {period} -l",
        "alloc list",
        f"usage {period}",
    ):
        code, lines = Terminal(bank, *words.split(), columns=columns).end()
        assert code == 0
        assert [line for line in lines if len(ESCAPE.sub("", line)) > columns] == []


def test_overview_fits_one_screen(bank: Bank) -> None:
    _, lines = Terminal(bank, "--as", "61002").end()
    assert len(lines) <= 24
    text = ESCAPE.sub("", "\n".join(lines))
    for part in (
        "100,000",
        "59,408",
        "! 2026-12-03",
        "Your running jobs, 128 of gpu held",
        "812330",
        "Your jobs refused in the last 7",
        "812350",
    ):
        assert part in text


@pytest.mark.parametrize("columns", [80, 120])
def test_sentences_write_amounts_as_the_tables_do(bank: Bank, columns: int) -> None:
    for words, in_table, in_sentence in (
        ("statement 1 -S 2026-11-20", "59,408", "remaining 59,408 = granted 100,000 SU"),
        ("jobs --refused -a", "384", "Of 5,000 SU 4,610 are used, 128 held"),
        ("balance -A chem_qmc --threshold 10k", "5,000", "you may use 262 SU, less than 10,000"),
    ):
        _, lines = Terminal(bank, *words.split(), columns=columns).end()
        text = " ".join(ESCAPE.sub("", " ".join(lines)).split())
        assert in_table in text
        assert in_sentence in text
        assert re.findall(r"\b(?!6100)\d{5}\b", text) == []  # 61001 is a user


def test_pipe_loses_no_column_and_narrow_terminal_says_how_to_get_it(bank: Bank) -> None:
    words = ("statement", "2", "-S", "2026-01-01", "-l")
    environment = {name: text for name, text in os.environ.items() if name != "COLUMNS"}
    piped = subprocess.run(
        [sys.executable, "-c", START, *words],
        env={**environment, "FAIRBANK_SERVER": bank.unix, "HOME": "/nowhere"},
        capture_output=True,
        text=True,
        check=True,
    )
    for head in ("ENTRY", "JOB/REF", "REASON"):
        assert head in piped.stdout
    assert "not shown" not in piped.stderr
    _, lines = Terminal(bank, *words, columns=60).end()
    text = " ".join(" ".join(lines).split())
    assert "ENTRY, JOB/REF: not shown, as the terminal is too narrow" in text
    assert "-o +ENTRY,JOB/REF adds them" in text
    _, lines = Terminal(bank, *words, "-o", "+ENTRY", columns=60).end()
    assert "ENTRY" in " ".join(lines)


def test_colours_are_for_terminals_and_never_the_only_signal(bank: Bank) -> None:
    _, coloured = Terminal(bank, "balance", "--as", "61001").end()
    assert any("\x1b[33m!\x1b[0m 2026-12-03" in line for line in coloured)
    for terminal in (
        Terminal(bank, "balance", "--as", "61001", NO_COLOR="1"),
        Terminal(bank, "balance", "--as", "61001", "--color", "never"),
    ):
        _, plain = terminal.end()
        assert not any("\x1b" in line for line in plain)
        assert any("! 2026-12-03" in line for line in plain)


def test_wide_terminal_shows_more(bank: Bank) -> None:
    _, lines = Terminal(bank, "balance", columns=160).end()
    assert "CATEGORY" in "".join(lines)
    _, lines = Terminal(bank, "balance", columns=80).end()
    assert "CATEGORY" not in "".join(lines)


@pytest.mark.parametrize(
    ("answer", "code", "message"),
    [("n\n", 1, "Nothing was changed."), ("\n", 1, "Nothing was changed."), ("y\n", 0, "entry ")],
)
def test_withdrawal_asks_on_a_terminal(
    own_bank: Bank, answer: str, code: int, message: str
) -> None:
    terminal = Terminal(own_bank, "withdraw", "3", "1", "--reason", "test")
    wait_until(lambda: "[y/N]" in terminal.read(), "the question")
    assert "remaining 11,690 -> 11,689" in " ".join(terminal.output.split())
    terminal.type(answer)
    ended, lines = terminal.end()
    assert ended == code
    assert any(line.startswith(message) for line in lines)


def test_warning_of_a_declined_charge_is_not_repeated(own_bank: Bank) -> None:
    job = ("-A", "chem_qmc", "-p", "idle-std")
    held, _ = Terminal(own_bank, "hold", "33", "-t", "60", *job, "--amount", "4").end()
    terminal = Terminal(own_bank, "charge", "33", "--amount", "9")
    wait_until(lambda: "[y/N]" in terminal.read(), "the question")
    terminal.type("n\n")
    code, lines = terminal.end()
    assert (held, code, lines[-1]) == (0, 1, "Nothing was changed.")
    assert " ".join(lines).count("the job holds 4 SU, 5 SU less") == 1


def test_line_typed_before_the_question_is_no_answer(own_bank: Bank) -> None:
    terminal = Terminal(own_bank, "withdraw", "3", "1", "--reason", "test")
    terminal.type("y\nfairbank balance\n")  # pasted together with the command
    wait_until(lambda: "[y/N]" in terminal.read(), "the question")
    assert terminal.process.poll() is None
    terminal.type("\n")
    code, lines = terminal.end()
    assert (code, lines[-1]) == (1, "Nothing was changed.")


@pytest.mark.parametrize(
    ("words", "asks"),
    [
        ("deposit 3 1 --reason test", False),
        ("deposit 3 1000k --reason test", True),
        ("project create physics --gid 9", False),
        ("project remove bio_fold", True),
        ("project add-user bio_fold 61009", False),
        ("project remove-user bio_fold 61001", True),
        ("alloc freeze 3 --reason test", False),
        ("alloc end 3 --reason test", True),
        ("alloc set 3 --credit-limit 1 --reason test", False),
        ("alloc set 3 --end 2026-12-01 --reason test", True),
        ("alloc extend 3 2028-01-01 --reason test", False),
        ("token create laptop", False),
        ("charge 812344 -M darwin --amount 4000", True),
        ("charge 812344 -M darwin --amount 100", False),
    ],
)
def test_only_removing_ending_and_large_changes_ask(own_bank: Bank, words: str, asks: bool) -> None:
    terminal = Terminal(own_bank, *words.split())
    if asks:
        wait_until(lambda: "[y/N]" in terminal.read(), "the question")
        terminal.type("n\n")
    code, lines = terminal.end()
    assert (code, "[y/N]" in "".join(lines)) == ((1, True) if asks else (0, False))


def test_yes_skips_the_question(own_bank: Bank) -> None:
    code, lines = Terminal(own_bank, "withdraw", "3", "1m", "--reason", "test", "--yes").end()
    assert (code, "[y/N]" in "".join(lines)) == (0, False)


def test_question_is_in_words_also_with_json(own_bank: Bank, changing: Run) -> None:
    """The limit was 10 SU; the dry run has 600 SU-minutes."""
    for limit in (10, 20):
        words = ("alloc", "set", 3, "--credit-limit", limit, "--reason", "x", "--yes")
        entry = entry_number(changing(*words))
    terminal = Terminal(own_bank, "undo", str(entry), "--reason", "x", "--json")
    wait_until(lambda: "[y/N]" in terminal.read(), "the question")
    assert "credit limit 10 SU. Continue?" in " ".join(terminal.output.split())
    terminal.type("n\n")
    assert terminal.end()[0] == 1


def test_ctrl_c_exits_with_130_and_no_traceback(bank: Bank) -> None:
    terminal = Terminal(bank, "balance", "--watch", "5", "--as", "61001")
    wait_until(lambda: "AVAILABLE" in terminal.read(), "the first round")
    terminal.process.send_signal(signal.SIGINT)
    code, lines = terminal.end()
    assert code == 130
    assert "Traceback" not in "".join(lines)


def test_early_closed_pipe_is_no_error(bank: Bank) -> None:
    environment = {**os.environ, "FAIRBANK_SERVER": bank.unix}
    shell = (
        f'"{sys.executable}" -c "{START}" jobs -a --csv --limit all | head -1; echo'
        " ${PIPESTATUS[0]}"
    )
    done = subprocess.run(
        ["bash", "-c", shell], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "0"
    assert done.stderr == ""


def test_full_disk_is_reported(bank: Bank) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-c", START, "balance"],
            env={**os.environ, "FAIRBANK_SERVER": bank.unix},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.startswith(
        "fairbank: the output cannot be written: the disk is full\n  try: free disk space"
    )
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("words", ["balance", "--help", "--version"])
def test_closed_output_is_reported(bank: Bank, words: str) -> None:
    done = subprocess.run(
        ["bash", "-c", f'"{sys.executable}" -c "{START}" {words} >&-'],
        env={**os.environ, "FAIRBANK_SERVER": bank.unix},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (
        1,
        "fairbank: standard output is closed\n  try: redirect it to /dev/null instead\n",
    )


def test_closed_input_and_error_are_no_fault(bank: Bank) -> None:
    done = subprocess.run(
        ["bash", "-c", f'"{sys.executable}" -c "{START}" balance <&- 2>&-'],
        env={**os.environ, "FAIRBANK_SERVER": bank.unix},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert "\nPROJECT " in done.stdout


def test_unencodable_characters_are_escaped(bank: Bank) -> None:
    done = subprocess.run(
        [sys.executable, "-c", START, "化学"],
        env={**os.environ, "PYTHONIOENCODING": "ascii", "FAIRBANK_SERVER": bank.unix},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "\\u5316" in done.stderr


# --- pages ---

LONG = ("statement", "1", "-S", "2026-01-01")


def test_long_output_is_shown_in_the_pager(bank: Bank, tmp_path: Path) -> None:
    pager = tmp_path / "pager"
    pager.write_text("#!/bin/sh\nsed 's/^/page: /'\n")
    pager.chmod(0o755)
    code, lines = Terminal(bank, *LONG, lines=10, PAGER=str(pager)).end()
    assert code == 0
    answer = [line for line in lines if line.startswith("page: ")]
    assert answer[0].startswith("page: Allocation 1")
    assert "(closing)" in answer[-1]
    assert lines[-1].startswith("ok  used")  # stderr comes after the pages
    for terminal in (
        Terminal(bank, *LONG, lines=60, PAGER=str(pager)),
        Terminal(bank, *LONG, "--no-pager", lines=10, PAGER=str(pager)),
        Terminal(bank, *LONG, lines=10, PAGER="cat"),
        Terminal(bank, *LONG, lines=10, PAGER=str(pager), TERM="dumb"),
        Terminal(bank, *LONG, lines=10, PAGER="/no/such/pager"),
    ):
        code, lines = terminal.end()
        assert (code, [line for line in lines if line.startswith("page: ")]) == (0, [])
        assert any("(closing)" in line for line in lines)


def test_typed_ahead_input_disables_the_pager(bank: Bank, tmp_path: Path) -> None:
    pager = tmp_path / "pager"
    pager.write_text("#!/bin/sh\nsed 's/^/page: /'\n")
    pager.chmod(0o755)
    terminal = Terminal(bank, *LONG, lines=10, PAGER=str(pager))
    terminal.type("fairbank balance\n")
    _, lines = terminal.end()
    assert "page: " not in "".join(lines)
    assert any("(closing)" in line for line in lines)


def test_less_is_left_with_q_and_survives_ctrl_c(bank: Bank) -> None:
    if shutil.which("less") is None:
        pytest.skip("this machine has no less")
    terminal = Terminal(bank, *LONG, "-q", lines=10, PAGER="less")
    wait_until(lambda: "Allocation 1" in terminal.read(), "the first page")
    terminal.type("\x03")
    terminal.type("q")
    code, lines = terminal.end()
    assert code == 0
    assert not any("(closing)" in line for line in lines)


def test_pager_that_exits_early_is_no_error(bank: Bank, tmp_path: Path) -> None:
    pager = tmp_path / "pager"
    pager.write_text("#!/bin/sh\nhead -n 1\n")
    pager.chmod(0o755)
    code, lines = Terminal(bank, *LONG, "--json", lines=10, PAGER=str(pager)).end()
    assert (code, lines) == (0, ["{"])
