"""Completion in real shells: commands, names that the bank knows, nothing without a bank."""

from __future__ import annotations

import os
import pty
import select
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest

from fairbank.cli import main, names
from fairbank.cli.completion import NameCompleter, build_parser
from fairbank.cli.framework.command import Command
from fairbank.cli.names import CACHE_SECONDS, RETRY_SECONDS, Name, NameCache, is_plain_word
from tests.cli.conftest import Run
from tests.cli.served_site import Bank

BIN = Path(sys.executable).parent
COMPLETE = """
complete -p "$1" >/dev/null || exit 9
COMP_LINE="$*" COMP_POINT=${#COMP_LINE} COMP_TYPE=9
COMP_POINT=${#COMP_LINE}
_python_argcomplete "$1"
printf '%s\\n' "${COMPREPLY[@]}"
"""


def environment(server: str, home: Path) -> dict[str, str]:
    """Return the environment of a shell whose bank is `server`."""
    cache = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("FAIRBANK_", "XDG_"))
    }
    return {
        **cache,
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "FAIRBANK_SERVER": server,
        "HOME": str(home),
        "TERM": "dumb",
    }


@cache
def bash_script() -> str:
    """Return the completion script. It is the same for all tests, so one process prints it."""
    return subprocess.run(
        [BIN / "fairbank", "completion", "bash"], capture_output=True, text=True, check=True
    ).stdout


class Bash:
    """Completion of a command line by bash."""

    def __init__(self, server: str, home: Path) -> None:
        if (program := shutil.which("bash")) is None:
            pytest.skip("there is no bash here")
        self.program = program
        self.environment = environment(server, home)

    def offers(self, *words: str, program: str = "fairbank") -> list[str]:
        """Return the words that bash offers for the last word, sorted."""
        done = subprocess.run(
            [self.program, "--norc", "-c", bash_script() + COMPLETE, "bash", program, *words],
            env=self.environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stderr == ""
        return sorted(done.stdout.split())


@pytest.fixture
def shell(bank: Bank, tmp_path: Path) -> Bash:
    """Return a bash whose bank answers."""
    return Bash(bank.unix, tmp_path)


class InteractiveShell:
    """Interactive shell on a pseudo-terminal."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self._process, self._terminal = _fork(command, environment)
        self._output = ""

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def wait_for(self, text: str, seconds: float = 30) -> None:
        """Read until the text has appeared. Raises TimeoutError with the text read so far."""
        deadline = time.monotonic() + seconds
        while text not in self._output:
            if time.monotonic() > deadline:
                raise TimeoutError(f"no {text!r} in {self._output!r}")
            if select.select([self._terminal], [], [], 0.1)[0]:
                self._output += os.read(self._terminal, 4096).decode(errors="replace")

    def clear(self) -> None:
        self._output = ""

    def close(self) -> None:
        with suppress(OSError):
            os.write(self._terminal, b"\x03exit\n")
        os.close(self._terminal)
        os.waitpid(self._process, 0)


def _fork(command: list[str], environment: dict[str, str]) -> tuple[int, int]:
    process, terminal = pty.fork()
    if process == 0:
        os.execvpe(command[0], command, environment)
    return process, terminal


@pytest.mark.parametrize(
    ("command", "setup"),
    [
        (["bash", "--norc", "-i"], 'eval "$(fairbank completion bash)"'),
        (
            ["zsh", "-f", "-i"],
            'autoload -U compinit && compinit -u; eval "$(fairbank completion zsh)"',
        ),
    ],
    ids=["bash", "zsh"],
)
def test_tab_completes_in_an_interactive_shell(
    bank: Bank, tmp_path: Path, command: list[str], setup: str
) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"there is no {command[0]} here")
    shell = InteractiveShell(command, environment(bank.unix, tmp_path))
    try:
        shell.type(f"{setup}; echo rea''dy\n")
        shell.wait_for("ready")
        shell.clear()
        shell.type("fairbank whoa\t")
        shell.wait_for("whoami")
        shell.type("\x15fairbank balance -A che\t")
        shell.wait_for("chem_qmc")
        shell.type("\x15fairbank alloc reo\t")
        shell.wait_for("reopen")
        if command[0] == "zsh":
            shell.type("\x15fairbank alloc show \t")
            shell.wait_for("chem_qmc/cpu active")
    finally:
        shell.close()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["bal"], ["balance"]),
        (["alloc", "fr"], ["freeze"]),
        (["deposit", "1", "--rea"], ["--reason"]),
        (["--json", "alloc", "fr"], ["freeze"]),
        (["usage", "--by", "mo"], ["month"]),
        (["alloc", "--st"], ["--state"]),
        (["alloc", "list", "--state", "fr"], ["frozen"]),
        (["alloc", "list", "--state=fr"], ["frozen"]),
        (["completion", "z"], ["zsh"]),
    ],
)
def test_commands_and_options_are_completed(
    shell: Bash, words: list[str], offered: list[str]
) -> None:
    assert shell.offers(*words) == offered


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["balance", "-A", "ch"], ["chem_qmc"]),
        (["balance", "-A", ""], ["bio_fold", "chem_qmc"]),
        (["usage", "-A", "chem_qmc,b"], ["chem_qmc,bio_fold"]),
        (["usage", "--account=chem_qmc,b"], ["chem_qmc,bio_fold"]),
        (["jobs", "-p", "gpu"], ["gpu-v100"]),
        (["jobs", "-M", ""], ["darwin"]),
        (["usage", "-r", "c"], ["cpu"]),
        (["alloc", "show", ""], ["1", "2", "3"]),
        (["transfer", "1", ""], ["1", "2", "3"]),
        (["deposit", ""], ["1", "2", "3"]),
        (["alloc", "cap", "1", "6100"], ["61001", "61002", "61003", "61004"]),
        (["project", "show", "bio"], ["bio_fold"]),
        (["statement", "--verbose", "1"], ["1"]),
    ],
)
def test_names_from_the_bank_are_completed(
    shell: Bash, words: list[str], offered: list[str]
) -> None:
    assert shell.offers(*words) == offered


def test_help_topics_are_completed(shell: Bash) -> None:
    assert shell.offers("he") == ["help"]
    assert shell.offers("help", "bal") == ["balance"]
    assert shell.offers("help", "rea") == ["reasons"]
    assert shell.offers("help", "alloc", "fre") == ["freeze"]


def test_sproject_is_completed(shell: Bash) -> None:
    assert shell.offers("al", program="sproject") == ["allocations"]
    assert shell.offers("jobs", "--det", program="sproject") == ["--detail"]
    assert "chem_qmc" in shell.offers("jobs", "-A", "", program="sproject")


def test_file_arguments_are_completed(shell: Bash, tmp_path: Path) -> None:
    (tmp_path / "job.sh").touch()
    assert shell.offers("quote", f"{tmp_path}/jo") == [f"{tmp_path}/job.sh"]


def test_free_text_is_not_completed(shell: Bash) -> None:
    assert shell.offers("deposit", "1", "") == []
    assert shell.offers("deposit", "-A", "chem_qmc", "") == []
    assert shell.offers("deposit", "1", "20k", "--reason", "") == []
    assert shell.offers("nosuch", "") == []


@pytest.fixture
def silent_server(tmp_path: Path) -> Iterator[socket.socket]:
    """Serve a socket that accepts connections and never answers."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        server.listen()
        server.setblocking(False)
        yield server


def count_connections(server: socket.socket) -> int:
    """Accept and count the connections that are waiting."""
    number = 0
    with suppress(BlockingIOError):
        while True:
            server.accept()[0].close()
            number += 1
    return number


@pytest.mark.parametrize("failure", ["silent", "absent", "misspelt"])
def test_completion_is_silent_when_the_bank_does_not_answer(
    silent_server: socket.socket, failure: str, tmp_path: Path
) -> None:
    addresses = {"silent": f"unix:{tmp_path}/s", "absent": f"unix:{tmp_path}/none"}
    shell = Bash(addresses.get(failure, "gopher://x"), tmp_path)
    assert shell.offers("balance", "-A", "") == []
    assert count_connections(silent_server) == (failure == "silent")
    assert shell.offers("balance", "-A", "") == []
    assert count_connections(silent_server) == 0, "no second attempt at once"
    assert shell.offers("balance", "--ac") == ["--account"]


def test_completion_gives_up_before_a_person_does() -> None:
    assert names.TIMEOUT_SECONDS < 0.8


def test_cached_names_are_offered_without_the_bank(
    bank: Bank, silent_server: socket.socket, tmp_path: Path
) -> None:
    link = tmp_path / "link"
    link.symlink_to(bank.unix.removeprefix("unix:"))
    shell = Bash(f"unix:{link}", tmp_path)
    assert shell.offers("balance", "-A", "ch") == ["chem_qmc"]
    link.unlink()
    assert shell.offers("balance", "-A", "ch") == ["chem_qmc"], "fresh: no request is sent"
    link.symlink_to(tmp_path / "s")
    (cache,) = (tmp_path / ".cache" / "fairbank").iterdir()
    os.utime(cache, (0, 0))
    assert shell.offers("balance", "-A", "ch") == ["chem_qmc"], "old, and the bank does not answer"
    assert count_connections(silent_server) == 1
    assert (
        CACHE_SECONDS - RETRY_SECONDS - 60 < time.time() - cache.stat().st_mtime < CACHE_SECONDS
    ), "no retry for a while"


def test_names_are_cached_for_five_minutes(tmp_path: Path) -> None:
    cache = NameCache(str(tmp_path / "a" / "b"))
    assert (cache.fresh(), cache.read()) == (None, [])
    cache.write([Name("x", "about\tit")], retry_soon=False)
    assert cache.fresh() == [Name("x", "about\\tit")]
    os.utime(tmp_path / "a" / "b", (0, time.time() - CACHE_SECONDS - 1))
    assert cache.fresh() is None
    assert [name.word for name in cache.read()] == ["x"]
    assert (tmp_path / "a").stat().st_mode & 0o077 == 0


def test_cache_that_cannot_be_written_is_ignored(shell: Bash) -> None:
    shell.environment["XDG_CACHE_HOME"] = "/dev/null"
    assert shell.offers("balance", "-A", "") == ["bio_fold", "chem_qmc"]


@pytest.mark.parametrize(
    "word", ["", "-x", "a b", "$(id)", "a;b", "`id`", "a\nb", "é", "a,b", "a'b"]
)
def test_words_that_a_shell_would_expand_are_not_offered(word: str) -> None:
    assert not is_plain_word(word)


def completer(program: str, *words: str) -> NameCompleter | None:
    """Return the completer of the value after an option, the last word but one."""
    parser = build_parser(program, [*words, ""])
    while (subparsers := parser._subparsers) is not None:
        (action,) = subparsers._group_actions
        name = next((word for word in words if word in (action.choices or ())), None)
        if name is None:
            break
        parser = action.choices[name]  # type: ignore[index]
    return vars(parser._option_string_actions[words[-1]]).get("completer")


def test_names_have_descriptions(bank: Bank, clean_env: pytest.MonkeyPatch, tmp_path: Path) -> None:
    clean_env.setenv("FAIRBANK_SERVER", bank.unix)
    clean_env.setenv("XDG_CACHE_HOME", str(tmp_path))
    offered = NameCompleter("allocations", several=False, words=[])(prefix="")
    assert offered["1"] == "chem_qmc/cpu active"
    partitions = NameCompleter("partitions", several=False, words=[])(prefix="")
    assert partitions["idle-std"] == "darwin, bills cpu"
    projects = NameCompleter("projects", several=True, words=[])(prefix="bio_fold,")
    assert projects["bio_fold,chem_qmc"] == "group chem_qmc"


@pytest.mark.parametrize("name", ["bash", "zsh", "fish", "tcsh"])
def test_each_shell_has_a_script(fairbank: Run, name: str, tmp_path: Path) -> None:
    script = fairbank("completion", name).out
    assert all(program in script for program in ("fairbank", "sproject", "sbalance"))
    if (program := shutil.which(name)) is None or name == "tcsh":
        return
    path = tmp_path / "script"
    path.write_text(script)
    done = subprocess.run([program, "-n", str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_kind_of_name_has_a_completer() -> None:
    kinds = set()
    for entry in main.COMMANDS:
        command = main.load_command(entry.location)
        for verb in ("",) if isinstance(command, Command) else command.verbs:
            parser = build_parser("fairbank", [entry.name, verb, ""])
            stack = [parser]
            while stack:
                for action in stack.pop()._actions:
                    if isinstance(action.choices, dict):
                        stack += [choice for choice in action.choices.values() if choice._actions]
                    offered = vars(action).get("completer")
                    kinds |= {offered.kind} if isinstance(offered, NameCompleter) else set()
    assert kinds == set(names.KINDS)


def test_only_lists_of_projects_continue_after_a_comma() -> None:
    assert completer("fairbank", "jobs", "--account") == NameCompleter(
        "projects", several=True, words=["--account", ""]
    )
    assert completer("fairbank", "balance", "--account") is not None
    assert completer("fairbank", "deposit", "--reason") is None
