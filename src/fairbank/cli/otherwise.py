"""What is to be otherwise: the options of `whatif`, and what they ask for."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from typing import TYPE_CHECKING, NamedTuple

from fairbank.cli.granting import add_granting
from fairbank.cli.options import at_least_one, count
from fairbank.cli.traces import POLICIES, USUAL, add_processors, add_trace
from fairbank.core.errors import Malformed
from fairbank.core.time import parse_duration

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.parser import Parser


class Asked(NamedTuple):
    """What is to be otherwise. `limit` in seconds; None and empty: as it was."""

    policy: str
    other: str
    add_nodes: int
    add_procs: int
    users: tuple[str, ...]
    groups: tuple[str, ...]
    jobs: tuple[int, ...]
    size: int | None
    limit: int | None
    limits_percent: int
    copies: int
    seed: int


def add_question(parser: Parser) -> None:
    add_trace(parser)
    parser.add_argument(
        "--policy", metavar="NAME|FILE", default=USUAL, help=f"{POLICIES} (usual: {USUAL})"
    )
    add_processors(parser)
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
    group = parser.add_argument_group("How sure")
    group.add_argument(
        "--shaken",
        metavar="N",
        type=count,
        default=0,
        help="look at so many slightly other copies of the trace as well",
    )
    group.add_argument("--seed", metavar="N", type=count, help="other copies (usual: 1)")
    group = parser.add_argument_group("Shares")
    group.add_argument(
        "--shares",
        metavar="FILE",
        help="lines `account,shares`: how much is delivered to whom beyond the shares",
    )
    group.add_argument(
        "--by",
        choices=("user", "group"),
        help="whose shares and credit are (usual: user; with --grant group, if any)",
    )
    add_granting(parser)


def _signed(said: str) -> int:
    if not re.fullmatch(r"[+-]?\d{1,9}", said, re.ASCII):
        raise ArgumentTypeError(f"{said[:40]!r} is not a whole number")
    return int(said)


def asked_of(options: Namespace) -> Asked:
    """Raises Malformed where nothing would be otherwise, and for a job of which is not said what would."""
    limit = None if options.limit is None else parse_duration(options.limit, field="limit")
    told = options.size is not None or limit is not None
    if options.job and not told:
        raise Malformed(
            "nothing would be otherwise with this job",
            field="job",
            remedy="add --size N or --limit TIME",
        )
    if told and not options.job:
        raise Malformed(
            "size and limit are those of a job, and none is named",
            field="job",
            remedy="add --job N",
        )
    if options.seed is not None and not options.shaken:
        raise Malformed(
            "--seed says which shaken copies are meant, and there are none",
            field="seed",
            remedy="add --shaken N, or leave it out",
        )
    seed = 1 if options.seed is None else options.seed
    asked = Asked(
        options.policy,
        options.to_policy or options.policy,
        options.add_nodes,
        options.add_procs,
        tuple(dict.fromkeys(options.drop_user)),
        tuple(dict.fromkeys(options.drop_group)),
        tuple(dict.fromkeys(options.job)),
        options.size,
        limit,
        options.scale_limits,
        options.shaken,
        seed,
    )
    same = Asked(
        options.policy, options.policy, 0, 0, (), (), (), None, None, 100, options.shaken, seed
    )
    if asked == same:
        remedy = "say what: --add-nodes, --add-procs, --drop-user, --drop-group, --job, --scale-limits or --to-policy"
        raise Malformed("nothing would be otherwise", field="whatif", remedy=remedy)
    return asked
