"""Recorded output of sshare and sprio of a real Slurm at one moment
(tests.slurm.lab.fairshare_recorder), and the same as rows of Fairbank.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from fairbank.report.slurm.sprio import PriorityRow, WeightRow
from fairbank.report.slurm.sshare import ShareRow
from fairbank.slurm.fairshare_view.priorities import PriorityInputs, priority_row, weights_of
from fairbank.slurm.fairshare_view.shares import share_rows
from fairbank.slurm.parsers import config, sacctmgr, sprio, sshare
from fairbank.slurm.parsers.job_lines import read_pending
from fairbank.slurm.parsers.machine import read_nodes, read_partitions

GOLDEN = Path(__file__).parents[1] / "golden" / "slurm-22.05" / "fairshare"


def printed(rule: str, name: str) -> str:
    return (GOLDEN / rule / f"{name}.txt").read_text()


def recorded_commands(rule: str, program: str) -> dict[str, tuple[str, list[str]]]:
    """Return the user and the arguments of each recorded command of a program, by file name."""
    result = {}
    for line in (GOLDEN / rule / "QUESTIONS").read_text().splitlines():
        name, who, words = line.split(": ", 2)
        if name.startswith(f"{program}-"):
            result[name.removeprefix(f"{program}-")] = (who, list(ast.literal_eval(words))[1:])
    return result


@cache
def standings(rule: str) -> list[ShareRow]:
    """Return all rows of sshare, in Slurm's order."""
    answer = sshare.read_shares(printed(rule, "sshare-everything"))
    assert answer.unreadable == ()
    return share_rows(answer.rows, fair_tree=rule == "fair-tree")


@cache
def weights_then(rule: str) -> WeightRow:
    """Return the weights in the settings of that time."""
    settings = config.read_config(printed(rule, "config"))
    return weights_of(config.read_settings(settings).factors.weights, settings[config.TRES])


@cache
def priorities_then(rule: str) -> list[PriorityRow]:
    """Return the lines of sprio, sorted by job. Their factors have the seven digits that sprio
    prints.
    """
    answer = sprio.read_factors(printed(rule, "sprio-everything"))
    assert answer.unreadable == ()
    return [priority_row(row, weights_then(rule)) for row in answer.rows]


def other_output() -> dict[str, str]:
    """Return further output of that cluster, by file name: nodes, QOS, and priorities of
    associations.
    """
    own = {("wg_astro", "alice"): 40, ("wg_bio", "carol"): 100}
    return {
        "nodes": (GOLDEN.parent / "nodes-oneliner.txt").read_text(),
        "qos": "normal|0|1.000000\nhigh|100|1.000000\nlow|1|1.000000\ndear|0|1.000000\n",
        "associations": "root|||\n"
        + "".join(f"{account}|{user}||{priority}\n" for (account, user), priority in own.items()),
    }


@cache
def priority_inputs(rule: str) -> PriorityInputs:
    """Return the inputs of the priorities of that moment. Job 18 had been tried on six whole
    nodes.
    """
    settings, more = config.read_config(printed(rule, "config")), other_output()
    return PriorityInputs(
        config.read_settings(settings).factors,
        settings[config.TRACKED],
        read_pending(printed(rule, "jobs")).rows,
        read_partitions(printed(rule, "partitions")).rows,
        read_nodes(more["nodes"]).rows,
        sacctmgr.QOS.read(more["qos"]).rows,
        sacctmgr.PRIORITIES.read(more["associations"]).rows,
        tested={18: 6 * 64},
    )
