"""Expected differences from Slurm, and comparison of transcripts with them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.wlm.scenarios.scenario import FOLDER, Scenario, scenarios
from tests.wlm.scenarios.transcript import Transcript

TABLE = FOLDER / "differences.toml"
RECORDED = "22.05"


class Finding(NamedTuple):
    """Field of a scenario that differs; None: it is not there."""

    place: str
    command: str
    slurm: str | None
    here: str | None

    def __str__(self) -> str:
        return (
            f"{self.place}  $ {self.command}\n  Slurm:    {self.slurm!r}\n  Fairbank: {self.here!r}"
        )


def unexpected(
    chosen: Sequence[Scenario],
    slurm: Mapping[str, Transcript],
    here: Mapping[str, Transcript],
    *,
    release: str = RECORDED,
    table: Path = TABLE,
) -> list[str]:
    """Return differences that are not in the table, and rows of it without a difference.

    A row that names another release of Slurm is left out. A row with `*` in the name of its
    scenario is looked for only if all scenarios ran, one with `by_chance` never.
    """
    rows = [
        row
        for row in tomllib.loads(table.read_text())["difference"]
        if row.get("release", release) == release
    ]
    ran, patterns = {scenario.name for scenario in chosen}, list(_patterns(rows))
    known = {scenario.name for scenario in scenarios()}
    findings = [one for scenario in chosen for one in _compare(scenario, slurm, here)]
    wrong = [
        str(finding)
        for finding in findings
        if not any(pattern.fullmatch(finding.place) for _, pattern in patterns)
    ]
    for text, pattern in _patterns([row for row in rows if not row.get("by_chance")]):
        name = text.partition(":")[0]
        if (name in ran or ("*" in name and ran == known)) and not any(
            pattern.fullmatch(finding.place) for finding in findings
        ):
            wrong.append(f"{text} no longer differs; delete it from {table.name}")
    return wrong


def _compare(
    scenario: Scenario, slurm: Mapping[str, Transcript], here: Mapping[str, Transcript]
) -> Iterator[Finding]:
    theirs, ours = slurm[scenario.name], here[scenario.name]
    for field in {**theirs, **ours}:
        if theirs.get(field) != ours.get(field):
            number = int(field.partition(" ")[0])
            command = scenario.commands[number - 1].partition("\n")[0]
            place = f"{scenario.name}: {field}"
            yield Finding(place, command, theirs.get(field), ours.get(field))


def _patterns(rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, re.Pattern[str]]]:
    for row in rows:
        for text in row["fields"]:
            yield text, re.compile(".*".join(map(re.escape, text.split("*"))))
