"""What sshare and sprio of a real Slurm printed of one moment (tests.slurm.lab.standing), and the same as rows of ours."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from fairbank.report.priorities import PriorityRow, Weights
from fairbank.report.shares import ShareRow
from fairbank.slurm.answers import priority, shares, sprio
from fairbank.slurm.answers.scontrol import read_config
from fairbank.slurm.ranking.jobs import priority_row, weights_of
from fairbank.slurm.ranking.shares import share_rows

GOLDEN = Path(__file__).parents[1] / "golden" / "slurm-22.05" / "standing"


def printed(rule: str, name: str) -> str:
    return (GOLDEN / rule / f"{name}.txt").read_text()


def asked(rule: str, program: str) -> dict[str, tuple[str, list[str]]]:
    """Who asked the program what, by the names of the answers."""
    found = {}
    for line in (GOLDEN / rule / "QUESTIONS").read_text().splitlines():
        name, who, words = line.split(": ", 2)
        if name.startswith(f"{program}-"):
            found[name.removeprefix(f"{program}-")] = (who, list(ast.literal_eval(words))[1:])
    return found


@cache
def standings(rule: str) -> list[ShareRow]:
    """The rows of sshare, all of them, in Slurm's order."""
    answer = shares.read_shares(printed(rule, "sshare-everything"))
    assert answer.unreadable == ()
    return share_rows(answer.rows, fair_tree=rule == "fair-tree")


@cache
def weights_then(rule: str) -> Weights:
    """From the settings of that time."""
    config = read_config(printed(rule, "config"))
    return weights_of(priority.read_settings(config).factors.weights, config[priority.TRES])


@cache
def priorities_then(rule: str) -> list[PriorityRow]:
    """The lines of sprio, sorted by job. Their factors have the seven digits that sprio prints."""
    answer = sprio.read_factors(printed(rule, "sprio-everything"))
    assert answer.unreadable == ()
    return [priority_row(row, weights_then(rule)) for row in answer.rows]
