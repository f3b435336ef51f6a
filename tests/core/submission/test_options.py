"""Options of sbatch, srun and salloc: table, command lines, scripts, as in Slurm's manual."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from fairbank.core.errors import InvalidInput
from fairbank.core.submission.options import (
    OPTIONS,
    GivenOption,
    Option,
    options_by_flag,
    parse_options,
)
from fairbank.core.submission.script import parse_script

LETTERS = {
    "sbatch": "a:array A:account b:begin B:extra-node-info c:cpus-per-task C:constraint D:chdir"
    " d:dependency e:error F:nodefile G:gpus H:hold h:help i:input J:job-name k:no-kill L:licenses"
    " M:clusters m:distribution N:nodes n:ntasks O:overcommit o:output p:partition q:qos Q:quiet"
    " s:oversubscribe S:core-spec t:time v:verbose V:version W:wait w:nodelist x:exclude",
    "salloc": "A:account b:begin I:immediate B:extra-node-info c:cpus-per-task C:constraint D:chdir"
    " d:dependency F:nodefile G:gpus H:hold h:help J:job-name k:no-kill L:licenses M:clusters"
    " m:distribution N:nodes n:ntasks O:overcommit p:partition q:qos Q:quiet s:oversubscribe"
    " S:core-spec t:time v:verbose V:version w:nodelist x:exclude",
}


@pytest.mark.parametrize("command", LETTERS)
def test_letters_are_those_of_the_manual(command: str) -> None:
    letters = {
        f"{option.letter}:{option.name}"
        for option in OPTIONS
        if option.letter and command in option.commands.split()
    }
    assert letters == set(LETTERS[command].split())


@pytest.mark.parametrize("command", ["sbatch", "srun", "salloc"])
def test_each_flag_has_one_meaning(command: str) -> None:
    options = [option for option in OPTIONS if command in option.commands.split()]
    flags = [option.flag for option in options] + [option.letter for option in options]
    assert [flag for flag, times in Counter(filter(None, flags)).items() if times > 1] == []
    assert all(flag.startswith("--") or len(flag) == 2 for flag in options_by_flag(command))


@pytest.mark.parametrize(
    ("flag", "command", "variables"),
    [
        ("-A", "sbatch", "SBATCH_ACCOUNT"),
        ("-A", "srun", "SLURM_ACCOUNT"),
        ("-A", "salloc", "SALLOC_ACCOUNT"),
        ("-a", "sbatch", "SBATCH_ARRAY_INX"),
        ("-c", "sbatch", ""),
        ("-c", "srun", "SRUN_CPUS_PER_TASK SLURM_CPUS_PER_TASK"),
        ("-D", "srun", "SLURM_REMOTE_CWD SLURM_WORKING_DIR"),
        ("-e", "sbatch", "SBATCH_ERROR"),
        ("-e", "srun", "SRUN_ERROR SLURM_STDERRMODE"),
        ("--export", "sbatch", "SBATCH_EXPORT"),
        ("--export", "srun", "SLURM_EXPORT_ENV SRUN_EXPORT_ENV"),
        ("-J", "salloc", ""),
        ("--mem", "sbatch", "SBATCH_MEM_PER_NODE"),
        ("-N", "sbatch", ""),
        ("-N", "srun", "SLURM_JOB_NUM_NODES SLURM_NNODES"),
        ("-n", "srun", "SLURM_NTASKS SLURM_NPROCS"),
        ("-t", "sbatch", "SBATCH_TIMELIMIT"),
        ("-v", "salloc", "SALLOC_DEBUG"),
    ],
)
def test_variables_are_those_of_the_manual(flag: str, command: str, variables: str) -> None:
    assert options_by_flag(command)[flag].variable_names(command) == variables.split()


@pytest.mark.parametrize(
    "option", [o for o in OPTIONS if o.bare is not None], ids=lambda option: option.name
)
def test_option_without_its_value_has_a_valid_one(option: Option) -> None:
    option.reader(option.bare or "", option.flag)


def given(words: str, command: str = "sbatch") -> list[tuple[str, str]]:
    """Return the names and values of a command line; unknown options as they are written."""
    return [
        (option.name if option else f"? {flag}", text)
        for option, flag, text in parse_options(iter(words.split()), command)[0]
    ]


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("-n 3 -c2 --mem=4G", [("ntasks", "3"), ("cpus-per-task", "2"), ("mem", "4G")]),
        ("--mem 4G", [("mem", "4G")]),
        ("--comment=a=b", [("comment", "a=b")]),
        ("-HQN2", [("hold", ""), ("quiet", ""), ("nodes", "2")]),
        ("-J -c8", [("job-name", "-c8")]),
        ("--nice --exclusive", [("nice", "100"), ("exclusive", "exclusive")]),
        ("--nice=-5 -k", [("nice", "-5"), ("no-kill", "set")]),
        ("--part=a --hol --mem-b 4", [("partition", "a"), ("hold", ""), ("mem-bind", "4")]),
        ("--tasks=2 --time 3", [("ntasks-per-node", "2"), ("time", "3")]),
        ("--mem-per=4G --par=a", [("? --mem-per", "4G"), ("? --par", "a")]),  # ambiguous
        ("-ntasks=5", [("ntasks", "tasks=5")]),
        ("--cluster=a --tasks-per-node 2", [("clusters", "a"), ("ntasks-per-node", "2")]),
        ("--wonder=5 -Zx", [("? --wonder", "5"), ("? -Z", "x")]),
        ("--nprocs=3", [("? --nprocs", "3")]),
    ],
)
def test_words_are_read_as_getopt_does(words: str, options: list[tuple[str, str]]) -> None:
    assert given(words) == options


@pytest.mark.parametrize(
    ("words", "script"),
    [
        ("-c 2 job.sh --mem=4G", ["job.sh", "--mem=4G"]),
        ("-c 2 -- --job.sh -c 3", ["--job.sh", "-c", "3"]),
        ("--cpus-per-t=2 - -c 3", ["-", "-c", "3"]),
        ("-c 2 --", [None]),
        ("-c2", [None]),
    ],
)
def test_options_end_at_the_job_script(words: str, script: list[str | None]) -> None:
    rest = iter(words.split())
    options, first = parse_options(rest, "sbatch")
    assert [(option.option, option.text) for option in options] == [
        (options_by_flag("sbatch")["-c"], "2")
    ]
    assert [first, *rest] == script


def test_nice_takes_no_value_of_the_next_word() -> None:
    assert given("--nice 5") == [("nice", "100")]


def test_srun_knows_its_names_of_2002() -> None:
    """The example of SLURM 2002, section 1."""
    assert given("--batch --nodes 2 --nprocs 2 --timelimit 5 --cddir /tmp", "srun") == [
        ("batch", ""),
        ("nodes", "2"),
        ("ntasks", "2"),
        ("time", "5"),
        ("chdir", "/tmp"),
    ]


def test_last_option_without_its_value_is_refused() -> None:
    with pytest.raises(InvalidInput, match="option .--mem. requires an argument") as error:
        given("-c 2 --mem")
    assert error.value.field == "--mem"


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ("#SBATCH --comment=a#b", [("--comment", "a")]),
        ("#SBATCH --comment=x'y z'w", [("--comment", "xy zw")]),
        ('#SBATCH -J "my job" # a remark', [("-J", "my job")]),
        ("#SBATCH --wonder 5 --part=a", [("--wonder", ""), ("--partition", "a")]),
        ("##SBATCH -c 2", []),
        (" #SBATCH -c 2", []),
        ("#sbatch -c 2", []),
        ("#SBATCH", []),
    ],
)
def test_line_of_a_script_is_read_as_in_sbatch(line: str, options: list[tuple[str, str]]) -> None:
    given_options = parse_script(["#!/bin/sh", line, "", "# more"], field="script").options
    assert [(flag, text) for _, flag, text in given_options] == options


def test_script_is_read_up_to_its_first_command() -> None:
    lines = ["#SBATCH -c 2", "", "#SBATCH -n", "#SBATCH 3", "true", "#SBATCH -c 4"]
    known = options_by_flag("sbatch")
    assert parse_script(lines, field="script").options == (
        GivenOption(known["-c"], "-c", "2"),
        GivenOption(known["-n"], "-n", "3"),
    )


def test_submission_needs_the_standard_library_only(checkout: Path) -> None:
    """A command that submits a job must start fast."""
    subprocess.run(
        [sys.executable, "-S", "-c", "import fairbank.core.submission.script"],
        env={"PYTHONPATH": str(checkout / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
        check=True,
    )
