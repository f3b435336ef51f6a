"""What the commands on recorded workloads take alike: a trace, policies, a machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.options import at_least_one, file_read

if TYPE_CHECKING:
    from argparse import _ArgumentGroup

    from fairbank.cli.parser import Parser

USUAL = "easy"
"""The policy, where none is named."""
POLICIES = "fifo, fcfs, easy, conservative, slurm, or a file FILE.toml"


def add_trace(parser: Parser, *, optional: bool = False) -> None:
    parser.add_argument(
        "trace",
        metavar="FILE",
        type=file_read,
        nargs="?" if optional else None,
        help="a trace in the Standard Workload Format, or what sacct -P printed; compressed or not; - is standard input",
    )


def add_processors(parser: Parser | _ArgumentGroup) -> None:
    parser.add_argument(
        "--procs",
        metavar="N",
        type=at_least_one,
        help="processors of the machine (usual: MaxProcs of the trace)",
    )
