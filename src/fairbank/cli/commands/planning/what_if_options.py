"""Options of `whatif`, and the question that they form."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from typing import TYPE_CHECKING

from fairbank.cli.commands.planning.workload_options import (
    DEFAULT_POLICY,
    POLICIES,
    add_budget,
    add_processors,
    add_trace,
)
from fairbank.cli.framework.options import at_least_one, count
from fairbank.core.errors import InvalidInput
from fairbank.core.time import parse_duration

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.framework.parser import Parser
    from fairbank.service.simulation.what_if import Question


def add_question(parser: Parser) -> None:
    """Add the options of the question: the workload, its changes, and the shares."""
    add_trace(parser)
    parser.add_argument(
        "--policy",
        metavar="NAME|FILE",
        default=DEFAULT_POLICY,
        help=f"{POLICIES} (default: {DEFAULT_POLICY})",
    )
    add_processors(parser)
    _add_changes(parser)
    _add_copies(parser)
    _add_shares(parser)
    add_budget(parser)


def _add_changes(parser: Parser) -> None:
    group = parser.add_argument_group("What if")
    group.add_argument(
        "--to-policy", metavar="NAME|FILE", help="another policy, or other weights in a file"
    )
    group.add_argument(
        "--add-nodes",
        metavar="N",
        type=_signed,
        default=0,
        help="so many nodes more; fewer: --add-nodes=-2",
    )
    group.add_argument(
        "--add-procs",
        metavar="N",
        type=_signed,
        default=0,
        help="so many processors more; fewer: --add-procs=-64",
    )
    group.add_argument(
        "--drop-user",
        metavar="USER",
        action="append",
        default=[],
        help="a user had never come; may be repeated",
    )
    group.add_argument(
        "--drop-group",
        metavar="GROUP",
        action="append",
        default=[],
        help="a group, or an account of Slurm, had not",
    )
    group.add_argument(
        "--job",
        metavar="N",
        type=count,
        action="append",
        default=[],
        help="a job by its number, with --size or --limit",
    )
    group.add_argument(
        "--size", metavar="N", type=at_least_one, help="that job on so many processors"
    )
    group.add_argument(
        "--limit",
        metavar="TIME",
        help="that job with this time limit, at which it ends: 30, 4:00:00, 1-12",
    )
    group.add_argument(
        "--scale-limits",
        metavar="PERCENT",
        type=at_least_one,
        default=100,
        help="all limits, but none shorter than the run",
    )


def _add_copies(parser: Parser) -> None:
    group = parser.add_argument_group("How sure")
    group.add_argument(
        "--shaken",
        metavar="N",
        type=count,
        default=0,
        help="look at so many slightly other copies of the trace as well",
    )
    group.add_argument("--seed", metavar="N", type=count, help="other copies (default: 1)")


def _add_shares(parser: Parser) -> None:
    group = parser.add_argument_group("Shares")
    group.add_argument(
        "--shares",
        metavar="FILE",
        help="lines `account,shares`: how much is delivered to whom beyond the shares",
    )
    group.add_argument(
        "--by",
        choices=("user", "group"),
        help="whose shares and credit are (default: user; with --grant group, if any)",
    )


def _signed(said: str) -> int:
    if not re.fullmatch(r"[+-]?\d{1,9}", said, re.ASCII):
        raise ArgumentTypeError(f"{said[:40]!r} is not a whole number")
    return int(said)


def question_of(options: Namespace) -> Question:
    """Return what to simulate.

    Raises InvalidInput if nothing would change, and for a bare --job.
    """
    from fairbank.service.simulation.what_if import MachineChange, Question
    from fairbank.simulator.traces.workload_edits import Resized, WorkloadEdits

    limit = None if options.limit is None else parse_duration(options.limit, field="limit")
    resized = options.size is not None or limit is not None
    if options.job and not resized:
        raise InvalidInput(
            "--job needs --size or --limit", field="job", remedy="add --size N or --limit TIME"
        )
    if resized and not options.job:
        raise InvalidInput("--size and --limit need --job", field="job", remedy="add --job N")
    if options.seed is not None and not options.shaken:
        raise InvalidInput(
            "--seed needs --shaken", field="seed", remedy="add --shaken N, or leave it out"
        )
    changes = WorkloadEdits(
        users=frozenset(options.drop_user),
        groups=frozenset(options.drop_group),
        jobs=dict.fromkeys(options.job, Resized(options.size, limit)),
        limits_percent=options.scale_limits,
    )
    machine = MachineChange(nodes=options.add_nodes, processors=options.add_procs)
    policy = options.to_policy or options.policy
    if changes == WorkloadEdits() and machine == MachineChange() and policy == options.policy:
        remedy = (
            "add --add-nodes, --add-procs, --drop-user, --drop-group, --job, --scale-limits or "
            "--to-policy"
        )
        raise InvalidInput("nothing would change", field="whatif", remedy=remedy)
    seed = 1 if options.seed is None else options.seed
    return Question(options.policy, policy, changes, machine, options.shaken, seed)
