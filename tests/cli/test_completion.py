"""Completion as real shells do it: words of the commands, names that the bank knows, and silence
when it does not answer.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairbank.cli import names
from fairbank.cli.completion_scripts import bash, fish
from fairbank.cli.completion_words import FILES, FREE, all_places, sproject_places
from fairbank.cli.names import AGAIN_SECONDS, FRESH_SECONDS, Kept, Name, harmless
from tests.cli.conftest import Run
from tests.cli.served_site import Bank

COMMANDS = Path(sys.executable).parent
ASK = """
complete -p "$program" >/dev/null || exit 9
{ "_$program" 2>&3; } 3>&1
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def shell(bank: Bank, tmp_path: Path) -> Bash:
    """A bash that has read the completion."""
    return Bash(bank.unix, tmp_path)


class Bash:
    """Completion of bash for the beginning of a command line; `milliseconds` is the time it
    took.
    """

    def __init__(self, server: str, home: Path) -> None:
        if (found := shutil.which("bash")) is None:
            pytest.skip("there is no bash here")
        self.program, self.milliseconds = found, 0.0
        self.environment = {
            **{
                name: value
                for name, value in os.environ.items()
                if not name.startswith(("FAIRBANK_", "XDG_"))
            },
            "PATH": f"{COMMANDS}{os.pathsep}{os.environ['PATH']}",
            "FAIRBANK_SERVER": server,
            "HOME": str(home),
        }
        self.script = bash(all_places()) + bash(sproject_places(), "sproject")

    def _run(self, script: str, *words: str) -> str:
        done = subprocess.run(
            [self.program, "--norc", "-c", script, "bash", *words],
            env=self.environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stderr == ""
        return done.stdout

    def offers(self, *words: str, program: str = "fairbank") -> list[str]:
        """For the last of `words`, which bash has cut into words itself."""
        began = time.monotonic()
        said = self._run(
            f'{self.script}\nprogram={program}; COMP_WORDS=($program "$@"); COMP_CWORD=$#\n{ASK}',
            *words,
        )
        self.milliseconds = (time.monotonic() - began) * 1000
        return said.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["bal"], ["balance"]),
        (["alloc", "fr"], ["freeze"]),
        (["deposit", "1", "--re"], ["--reason"]),
        (["--json", "alloc", "fr"], ["freeze"]),
        (["usage", "--by", "mo"], ["month"]),
        (["alloc", "--st"], ["--state"]),
        (["alloc", "list", "--state", "fr"], ["frozen"]),
        (["alloc", "list", "--state", "=", "fr"], ["frozen"]),
        (["alloc", "list", "--state=fr"], ["--state=frozen"]),
        (["completion", "z"], ["zsh"]),
    ],
)
def test_words_of_the_commands(shell: Bash, words: list[str], offered: list[str]) -> None:
    assert shell.offers(*words) == offered


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["balance", "-A", "ch"], ["chem_qmc"]),
        (["balance", "-A", ""], ["chem_qmc", "bio_fold"]),
        (["usage", "-A", "chem_qmc,b"], ["chem_qmc,bio_fold"]),
        (["usage", "--account", "=", "chem_qmc,b"], ["chem_qmc,bio_fold"]),
        (["jobs", "-p", "gpu"], ["gpu-v100"]),
        (["jobs", "-M", ""], ["darwin"]),
        (["usage", "-r", "c"], ["cpu"]),
        (["alloc", "show", ""], ["1", "2", "3"]),
        (["transfer", "1", ""], ["1", "2", "3"]),
        (["deposit", ""], ["1", "2", "3"]),
        (["alloc", "cap", "1", "6100"], ["61001", "61002", "61003", "61004"]),
        (["project", "show", "bio"], ["bio_fold"]),
        (["statement", "--server", "unix", ":", "/run/x", "1"], ["1"]),
    ],
)
def test_names_that_the_bank_knows(shell: Bash, words: list[str], offered: list[str]) -> None:
    assert shell.offers(*words) == offered


def test_help_on_commands_verbs_and_topics(shell: Bash) -> None:
    assert shell.offers("he") == ["help"]
    assert shell.offers("help", "bal") == ["balance"]
    assert shell.offers("help", "rea") == ["reasons"]
    assert shell.offers("help", "alloc", "fre") == ["freeze"]


def test_the_other_command_is_completed_too(shell: Bash) -> None:
    assert shell.offers("al", program="sproject") == ["allocations"]
    assert shell.offers("jobs", "--det", program="sproject") == ["--detail"]
    assert "chem_qmc" in shell.offers("jobs", "-A", "", program="sproject")
    assert "complete -c sproject -n '__fish_seen_subcommand_from jobs' -l detail" in fish(
        sproject_places(), "sproject"
    )


def test_files_where_a_file_is_wanted(shell: Bash, tmp_path: Path) -> None:
    (tmp_path / "job.sh").touch()
    assert shell.offers("quote", f"{tmp_path}/jo") == [f"{tmp_path}/job.sh"]


def test_nothing_where_anything_may_stand(shell: Bash) -> None:
    assert shell.offers("deposit", "1", "") == []
    assert shell.offers("deposit", "1", "20k", "--reason", "") == []
    assert shell.offers("nosuch", "") == []


@pytest.fixture
def silent(tmp_path: Path) -> Iterator[str]:
    """A bank that takes the call and says nothing."""
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(tmp_path / "s"))
        door.listen()
        yield f"unix:{tmp_path / 's'}"


@pytest.mark.parametrize("bank_is", ["silent", "absent", "misspelt"])
def test_completion_is_silent_when_the_bank_does_not_answer(
    silent: str, bank_is: str, tmp_path: Path
) -> None:
    shell = Bash(
        {"silent": silent, "absent": f"unix:{tmp_path}/none"}.get(bank_is, "gopher://x"), tmp_path
    )
    assert shell.offers("balance", "-A", "") == []
    assert bank_is != "silent" or shell.milliseconds > names.CAP_SECONDS * 1000
    assert shell.milliseconds < 3_000, "with room for a busy machine: the cap itself is a constant"
    assert names.CAP_SECONDS < 0.8
    (tmp_path / "s").unlink()  # and nobody is asked again at once
    assert shell.offers("balance", "-A", "") == []
    assert shell.offers("balance", "--ac") == ["--account"]


def test_what_was_known_is_offered_when_the_bank_is_gone(
    bank: Bank, silent: str, tmp_path: Path
) -> None:
    place = tmp_path / "link"
    place.symlink_to(bank.unix.removeprefix("unix:"))
    shell = Bash(f"unix:{place}", tmp_path)
    assert shell.offers("balance", "-A", "ch") == ["chem_qmc"]
    place.unlink()
    assert shell.offers("balance", "-A", "ch") == ["chem_qmc"], "fresh: nobody is asked"
    place.symlink_to(silent.removeprefix("unix:"))
    (kept,) = (tmp_path / ".cache" / "fairbank").iterdir()
    os.utime(kept, (0, 0))
    assert shell.offers("balance", "-A", "ch") == ["chem_qmc"], "old, and the bank says nothing"
    assert (
        FRESH_SECONDS - AGAIN_SECONDS - 60 < time.time() - kept.stat().st_mtime < FRESH_SECONDS
    ), "it is left alone for a while"


def test_names_are_kept_for_five_minutes(tmp_path: Path) -> None:
    kept = Kept(str(tmp_path / "a" / "b"))
    assert (kept.fresh(), kept.known()) == (None, [])
    kept.keep([Name("x", "about\tit")], again_soon=False)
    assert kept.fresh() == [Name("x", "about\\tit")]
    os.utime(tmp_path / "a" / "b", (0, time.time() - FRESH_SECONDS - 1))
    assert kept.fresh() is None
    assert [each.word for each in kept.known()] == ["x"]
    assert (tmp_path / "a").stat().st_mode & 0o077 == 0


def test_a_folder_that_cannot_be_written_is_done_without(
    fairbank: Run, surroundings: pytest.MonkeyPatch
) -> None:
    surroundings.setenv("XDG_CACHE_HOME", "/dev/null")
    said = fairbank("completion", "names", "projects")
    assert (said.code, said.out.split(), said.err) == (0, ["chem_qmc", "bio_fold"], "")


@pytest.mark.parametrize(
    "word", ["", "-x", "a b", "$(id)", "a;b", "`id`", "a\nb", "é", "a,b", "a'b"]
)
def test_what_a_shell_would_expand_is_never_offered(word: str) -> None:
    assert not harmless(word)


def test_names_with_a_word_about_each(fairbank: Run) -> None:
    assert (
        fairbank("completion", "names", "allocations", "--about").out.splitlines()[0]
        == "1\tchem_qmc/cpu active"
    )
    assert (
        fairbank("completion", "names", "partitions", "--about").out.splitlines()[-1]
        == "idle-std\tdarwin, bills cpu"
    )
    assert fairbank("completion", "names", "nosuch").code == 2


@pytest.mark.parametrize("name", ["zsh", "fish"])
def test_other_shells_take_their_scripts(fairbank: Run, name: str, tmp_path: Path) -> None:
    if (found := shutil.which(name)) is None:
        pytest.skip(f"there is no {name} here")
    script = tmp_path / "script"
    script.write_text(fairbank("completion", name).out)
    done = subprocess.run([found, "-n", str(script)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_zsh_keeps_its_path_and_words() -> None:
    """There both are the shell's own: to set them would lose every program."""
    body = bash(all_places()).partition("_fairbank() {")[2]
    assert not re.search(
        r"\b(path|words|status|argv|match)(=|\+=)|local .*\b(path|words|status|argv|match)\b", body
    )


def test_fish_knows_the_letters() -> None:
    script = fish(all_places())
    names = "(fairbank completion names projects --about 2>/dev/null)"
    assert (
        "complete -c fairbank -n '__fish_seen_subcommand_from balance' -s A -l account -x -a"
        f" '{names}'" in script
    )
    assert "__fish_seen_subcommand_from alloc; and __fish_seen_subcommand_from freeze" in script


def test_every_value_has_its_place() -> None:
    places = all_places()
    wanted = {want for each in places.values() for want in (*each.values.values(), *each.places)}
    assert {want.strip("@,") for want in wanted if want.startswith("@") and want != FILES} == set(
        names.KINDS
    )
    assert places["alloc"].usual == "list"
    assert places["jobs"].values["--account"] == "@projects,"
    assert places["deposit"].places == ("@allocations", FREE)
    assert "--cluster" not in places["jobs"].options, "what help does not show"
