"""sprio and sshare, byte for byte as a real Slurm 22.05 printed them."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any

import pytest

from fairbank.report.slurm.sprio import PriorityRow
from fairbank.report.slurm.sshare import ShareRow
from fairbank.slurm.parsers.config import read_config
from tests.support.fairshare_recordings import (
    printed,
    priorities_then,
    recorded_commands,
    standings,
)
from tests.wlm.client.recording_controller import RecordingController
from tests.wlm.commands.row_answers import Run, answer_with, last_rows, run

__all__ = ["run"]
RULES = ("fair-tree", "classic")
# The messages of sprio's sort and of sshare's columns go to standard error; priorities of one
# recording are sorted by digits that sprio does not print; names of jobs of other users; -l has
# two columns more since Slurm 23.02.
LEFT_OUT = {"by-nice", "unknown-field", "everything"}
FINER = ("classic", "by-fair-share")


def settings(rule: str) -> Mapping[str, str]:
    return read_config(printed(rule, "config"))


SPRIO = [
    (rule, name)
    for rule in RULES
    for name, (_, words) in recorded_commands(rule, "sprio").items()
    if name not in LEFT_OUT and (rule, name) != FINER and not {"-l", "-u"} & set(words)
]
SSHARE = [
    (rule, name)
    for rule in RULES
    for name, (user, _) in recorded_commands(rule, "sshare").items()
    if name not in LEFT_OUT and user == "root"
]


@pytest.mark.parametrize(("rule", "name"), SPRIO)
def test_priorities_are_printed_as_sprio_prints_them(
    controller: RecordingController, run: Run, rule: str, name: str
) -> None:
    _, words = recorded_commands(rule, "sprio")[name]
    jobs = words[words.index("-j") + 1].split(",") if "-j" in words else []
    rows = [row for row in priorities_then(rule) if not jobs or str(row.job) in jobs]
    answer_with(controller, settings(rule), priorities=rows)
    assert run("sprio", *words) == printed(rule, f"sprio-{name}")


def test_long_form_has_account_and_qos(controller: RecordingController, run: Run) -> None:
    row = PriorityRow(7, "cpu", "alice", "physics", "high", age=10.4, nice=5)
    answer_with(controller, settings("fair-tree"), priorities=[row])
    head, line = run("sprio", "-l", "-M", "lab").splitlines()
    assert head.split()[:5] == ["JOBID", "PARTITION", "USER", "ACCOUNT", "PRIORITY"]
    assert line.split()[:5] == ["7", "cpu", "alice", "physics", "5"]


def test_selection_of_priorities_is_sent(controller: RecordingController, run: Run) -> None:
    answer_with(controller, settings("fair-tree"), priorities=[])
    text = run("sprio", "-j", "7,8", "-u", "root", "-p", "cpu")
    assert text == "Unable to find jobs matching user/id(s) specified\n"
    sent = last_rows(controller).filter
    assert (sent.jobs, sent.users, sent.partitions) == (("7", "8"), ("root",), ("cpu",))


def test_unknown_letter_of_the_order_is_an_error(controller: RecordingController, run: Run) -> None:
    answer_with(controller, settings("fair-tree"), priorities=[])
    error = run("sprio", "-S", "?", fails=True)
    assert error.startswith("sprio: error: Invalid sort specification: ?\n")


def shares(rule: str) -> list[ShareRow]:
    """Return the rows as the controller sends them: JSON has no infinite number."""
    level: Any = "inf"
    return [row._replace(level=level) if row.level == math.inf else row for row in standings(rule)]


@pytest.mark.skipif(os.getuid() != 0, reason="recorded by root, whose own row sshare shows")
@pytest.mark.parametrize(("rule", "name"), SSHARE)
def test_shares_are_printed_as_sshare_prints_them(
    controller: RecordingController, run: Run, rule: str, name: str
) -> None:
    _, words = recorded_commands(rule, "sshare")[name]
    answer_with(controller, settings(rule), shares=shares(rule))
    assert run("sshare", *words) == printed(rule, f"sshare-{name}")


def test_unknown_field_of_sshare_is_an_error(controller: RecordingController, run: Run) -> None:
    answer_with(controller, shares=[])
    error = run("sshare", "-o", "account,nonsense", fails=True)
    assert error == printed("fair-tree", "sshare-unknown-field").rstrip("\n") + "\n"


def test_only_fields_of_the_columns_are_requested(
    controller: RecordingController, run: Run
) -> None:
    answer_with(controller, shares=[])
    run("sshare", "-o", "account,rawshares")
    assert set(last_rows(controller).columns) == {"account", "user", "parent", "shares"}
