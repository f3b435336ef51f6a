"""Job options as users give them to sbatch, read as far as they set the price."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.cli.commands.bank.job_script import (
    DEARER,
    JobDescription,
    add_job_options,
    describe_job,
    describe_unread,
    read_script,
)
from fairbank.cli.framework.parser import Parser
from fairbank.core.errors import InvalidInput
from fairbank.core.submission.options import options_by_flag
from fairbank.core.tres import parse_counts


def job(words: str) -> JobDescription:
    parser = Parser("quote", "")
    add_job_options(parser)
    return describe_job(parser.read(words.split()))


def requested(words: str) -> str:
    """Return the TRES, and the memory that is requested for each node, CPU or GPU."""
    described = job(words)
    return ",".join(
        [described.tres, *(f"{of}={size}" for of, size in described.layout.memory.items())]
    )


@pytest.mark.parametrize(
    ("words", "tres"),
    [
        ("", "cpu=1,node=1"),
        ("-c 8 --mem 64G", "cpu=8,node=1,mem=65536M"),
        ("--ntasks 4 -c 2 --mem-per-cpu 2G", "cpu=8,node=1,mem_per_cpu=2048M"),
        ("-N 2 --ntasks-per-node 16 --mem=1000", "cpu=32,node=2,mem=1000M"),
        ("-N 2-4 -c 2", "cpu=8,node=4"),
        ("--gpus 2", "cpu=1,node=1,gres/gpu=2"),
        ("--gpus v100:2", "cpu=1,node=1,gres/gpu=2,gres/gpu:v100=2"),
        ("--gpus v100:2,a100:1", "cpu=1,node=1,gres/gpu=3,gres/gpu:v100=2,gres/gpu:a100=1"),
        ("-N 3 --gpus-per-node 4", "cpu=3,node=3,gres/gpu=12"),
        ("--ntasks 6 --gpus-per-task 1", "cpu=6,node=1,gres/gpu=6"),
        (
            "-N 2 --gres gpu:v100:2,bandwidth:lustre:5",
            "cpu=2,node=2,gres/gpu=4,gres/gpu:v100=4,gres/bandwidth=10,gres/bandwidth:lustre=10",
        ),
        ("--gres gpu", "cpu=1,node=1,gres/gpu=1"),
        ("--gres gpu:A100", "cpu=1,node=1,gres/gpu=1,gres/gpu:a100=1"),
        ("--gres gpu:0", "cpu=1,node=1"),
        ("--gres none", "cpu=1,node=1"),
        ("--gpus 2 --gres lscratch:200,gpu:8", "cpu=1,node=1,gres/gpu=2,gres/lscratch=200"),
        ("--gpus 3090:2", "cpu=1,node=1,gres/gpu=2,gres/gpu:3090=2"),
        ("--gpus 4 --mem-per-gpu 10G", "cpu=1,node=1,gres/gpu=4,mem_per_gpu=10240M"),
        ("--mem 1K", "cpu=1,node=1,mem=1M"),
        ("--mem 1T", "cpu=1,node=1,mem=1048576M"),
        ("--mem 0", "cpu=1,node=1,mem=0M"),
    ],
)
def test_tres_of_job_options(words: str, tres: str) -> None:
    assert requested(words) == tres
    counted = tres.partition(",mem")[0]
    assert parse_counts(job(words).tres) == parse_counts(counted)


@pytest.mark.parametrize(
    ("words", "most"),
    [
        ("--ntasks 7 --ntasks-per-node 4 -c 2", 16),
        ("-N 4 --ntasks 8 --ntasks-per-node 4", 16),
        ("--ntasks 4 --ntasks-per-node 8", 8),
        ("--ntasks 8 --ntasks-per-node 4", None),
        ("--ntasks 1 --ntasks-per-node 8", None),
        ("-N 2 --ntasks-per-node 4", None),
    ],
)
def test_cores_that_older_slurms_take_for_few_tasks_are_noted(words: str, most: int | None) -> None:
    notes = [] if most is None else [f"Slurm before 24.05 takes {most} cores: those of"]
    assert [note.partition(" --")[0] for note in job(f"{words} --mem 1G").doubts] == notes


@pytest.mark.parametrize(
    ("words", "tres"),
    [
        ("--ntasks 8 --ntasks-per-node 4 --mem 1G", "cpu=8,node=2,mem=1024M"),
        ("--ntasks 7 --ntasks-per-node 4 --mem 1G", "cpu=7,node=2,mem=1024M"),
        ("-N 2 --ntasks 8 --ntasks-per-node 4", "cpu=8,node=2"),
        ("-N 1 --ntasks 8 --ntasks-per-node 4", "cpu=8,node=2"),
        ("-N 4 --ntasks 8 --ntasks-per-node 4", "cpu=8,node=4"),
        ("--ntasks 4 --ntasks-per-node 4", "cpu=4,node=1"),
        ("-N 4 --ntasks 2 --mem 1G", "cpu=2,node=2,mem=1024M"),
        ("--ntasks 8 --ntasks-per-node 4 --gpus-per-node 4", "cpu=8,node=2,gres/gpu=8"),
        ("--gpus 8 --gpus-per-node 4 --mem 1G", "cpu=2,node=2,gres/gpu=8,mem=1024M"),
        ("--gpus 8 --gpus-per-task 2", "cpu=4,node=1,gres/gpu=8"),
    ],
)
def test_nodes_and_tasks_follow_from_counts_as_in_sbatch(words: str, tres: str) -> None:
    assert requested(words) == tres


@pytest.mark.parametrize(
    ("array", "tasks"),
    [("7", 1), ("1-10", 10), ("0-31%4", 32), ("1-7:2", 4), ("1,3,5-7", 5), ("1-4,3-6", 6)],
)
def test_tasks_of_an_array_are_counted(array: str, tasks: int) -> None:
    assert job(f"--array {array}").array_tasks == tasks


@pytest.mark.parametrize(
    ("words", "field"),
    [
        *(
            ("-c x", "--cpus-per-task"),
            ("-c 0", "--cpus-per-task"),
            ("-N 0", "--nodes"),
            ("--mem lots", "--mem"),
            ("--array 5-1", "--array"),
            ("--array 0-9999999", "--array"),
            ("--array all", "--array"),
            ("--array 1-5:0", "--array"),
        ),
        *(
            ("--gpus x:y:z", "--gpus"),
            ("--gres gpu:-1", "--gres"),
            ("--gpus ,", "--gpus"),
            ("--ntasks 1e9", "--ntasks"),
        ),
    ],
)
def test_unreadable_value_is_reported_with_its_option(words: str, field: str) -> None:
    with pytest.raises(InvalidInput) as error:
        job(words)
    assert error.value.field == field


@pytest.mark.parametrize("size", ["99999999P", "16GG", "1.5G", "-1", "9" * 13 + "G"])
def test_invalid_size_is_reported_with_the_valid_suffixes(size: str) -> None:
    with pytest.raises(InvalidInput, match="is not a size of memory") as error:
        job(f"--mem={size}")
    assert (
        error.value.remedy
        == "write a whole number of MiB, or one with K, M, G or T behind it: 16G or 4000M"
    )


def test_unpriced_parts_are_reported() -> None:
    assert job("--mem 1G --array 1-10").doubts == []
    assert job("--ntasks 2 --ntasks-per-node 8").doubts != []
    assert job("--ntasks 2 --ntasks-per-node 8 --exclusive").doubts == []  # whole nodes anyway


SCRIPT = """\
#!/bin/bash
# a comment
#SBATCH -J "my job" -A chem_qmc
#SBATCH --partition=idle-std --nodes=2   # two
#SBATCH -n8 -c 2
#SBATCH --mem-per-cpu=4G -t 1-00:00:00 --qos high
#SBATCH --mail-type=ALL -o out.%j --exclusive --licenses=a --wonder 5

module load x
#SBATCH -t 99
"""


def test_script_is_read_up_to_its_first_command() -> None:
    options, unread = read_script(SCRIPT.splitlines())
    assert (
        options.account,
        options.partition,
        options.nodes,
        options.ntasks,
        options.cpus_per_task,
    ) == ("chem_qmc", "idle-std", "2", "8", "2")
    assert (options.mem_per_cpu, options.time, options.qos) == ("4G", "1-00:00:00", "high")
    assert describe_job(options).layout.exclusive
    assert unread == ["--licenses", "--wonder"]


@pytest.mark.parametrize(
    ("words", "unread"),
    [
        ("--exclusive=user -wn1 --cpus-per-gpu 4 -L matlab:2", ["-w", "--cpus-per-gpu", "-L"]),
        ("-Jname -o out --nice=5 -C v100 -x n1 --mail-type END -O -s --x11", []),
        ("-c 4 --mem-per-gpu 4G --gpus 1 --gres gpu:1", []),
    ],
)
def test_only_options_that_may_change_the_price_are_reported(words: str, unread: list[str]) -> None:
    assert read_script([f"#SBATCH {words}"])[1] == unread


def test_unpriced_options_are_reported() -> None:
    assert (
        describe_unread(["-w", "--core-spec", "-w", "--wonder"])
        == "--core-spec (all of each node), --wonder, -w (more nodes)"
    )


def test_options_of_a_quote_are_those_of_sbatch() -> None:
    """An option is either read, or reported as one that may change the price."""
    parser = Parser("quote", "")
    add_job_options(parser)
    read = {name for action in parser._actions for name in action.option_strings}
    known = options_by_flag("sbatch").keys() | {"hetjob", "packjob"}
    assert not read & set(DEARER)
    assert read | set(DEARER) <= known


@pytest.mark.parametrize(
    ("script", "tres"),
    [
        ("#SBATCH -J --mem=4G -c 2", "cpu=2,node=1"),  # `--mem=4G` is the job's name
        ("#SBATCH -HN3 --comment '-c 8'", "cpu=3,node=3"),
        ("#SBATCH -n\n#SBATCH 2", "cpu=2,node=1"),
        ("#SBATCH -N 1,3-5:2", "cpu=5,node=5"),
    ],
)
def test_options_of_a_script_take_their_values_as_in_sbatch(script: str, tres: str) -> None:
    options, unread = read_script(script.split("\n"))
    described = describe_job(options)
    assert (described.tres, described.layout.memory, unread) == (tres, {}, [])


def test_first_component_of_a_heterogeneous_job_is_priced() -> None:
    options, unread = read_script(
        ["#SBATCH -n 4 -p std", "#SBATCH hetjob", "#SBATCH -n 1 -p gpu --gpus 8"]
    )
    assert (options.ntasks, options.partition, options.gpus, unread) == (
        "4",
        "std",
        None,
        ["hetjob"],
    )


@pytest.mark.parametrize(
    ("written", "exclusive"),
    [("--exclusive", True), ("--exclusive=user", False), ("--exclusive=topo", False)],
)
def test_only_exclusive_nodes_take_all_of_each_node(written: str, exclusive: bool) -> None:
    options, unread = read_script([f"#SBATCH {written}"])
    assert (describe_job(options).layout.exclusive, unread) == (exclusive, [])


def test_unclosed_quote_is_reported_with_its_line() -> None:
    with pytest.raises(InvalidInput, match="line 2"):
        read_script(["#!/bin/sh", '#SBATCH -J "x'])


@given(
    st.lists(
        st.text(max_size=40).map(lambda options: f"#SBATCH {options}") | st.text(max_size=20),
        max_size=10,
    )
)
def test_any_script_is_parsed_or_refused(lines: list[str]) -> None:
    try:
        describe_job(read_script(lines)[0])
    except InvalidInput as error:
        assert error.message.isprintable()


def test_upper_end_of_nodes_is_kept_unless_tasks_share_cpus() -> None:
    assert job("-n 100 -N 1-2").max_nodes == 2
    for flag in ("-O", "--overcommit"):
        options, unread = read_script([f"#SBATCH -n 100 -N 1 --ntasks-per-node 100 {flag}"])
        described = describe_job(options)
        assert (described.max_nodes, described.node_requests, unread) == (None, {}, [])
