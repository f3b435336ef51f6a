"""Every keyword is read from wlm.toml and slurm.conf into equal settings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import fairbank
from fairbank.wlm.config.entries import KEYWORDS
from fairbank.wlm.config.keyword import NAMES, Keyword, KeywordEffect, snake_case
from fairbank.wlm.core.settings import DaemonSettings, JobSettings
from tests.wlm.config.files import (
    CONF,
    MACHINE,
    MACHINE_TOML,
    conf,
    conf_error,
    load,
    toml,
    toml_error,
)
from tests.wlm.config.samples import SAMPLES

IN_BOTH = [keyword for keyword in KEYWORDS if keyword.is_in_slurm_conf]
REFUSED = [keyword for keyword in IN_BOTH if keyword.effect is KeywordEffect.REFUSED]
WITHOUT_EFFECT = [keyword for keyword in IN_BOTH if keyword.effect is KeywordEffect.NO]
CHECKED = [keyword for keyword in IN_BOTH if keyword.form and keyword not in REFUSED]
FIRST = {
    "nodes": ("NodeName=m1", 'node_name = "m1"'),
    "partitions": ("PartitionName=long Nodes=ALL", 'partition_name = "long"\nnodes = "ALL"'),
}
"""Lines to which a keyword of a node or partition is added."""


def name_of(keyword: Keyword) -> str:
    return f"{keyword.group}.{keyword.key}"


def forms(keyword: Keyword, value: str) -> tuple[str, str]:
    """Return a keyword in a slurm.conf and in a wlm.toml."""
    line, key = f'{keyword.name}="{value}"', f'{keyword.key} = "{value}"'
    if keyword.group not in FIRST:
        return line, f"[{keyword.group}]\n{key}"
    first, first_key = FIRST[keyword.group]
    # Another value of a keyword of the line takes its place.
    words = [word for word in first.split() if not word.startswith(f"{keyword.name}=")]
    keys = [row for row in first_key.split("\n") if not row.startswith(f"{keyword.key} ")]
    joined = [line, *words] if keyword.name in NAMES.values() else [*words, line]
    return " ".join(joined), "\n".join([f"[[{keyword.group}]]", *keys, key])


@pytest.mark.parametrize("keyword", CHECKED, ids=name_of)
def test_keyword_has_equal_settings_in_both_forms(keyword: Keyword) -> None:
    line, table = forms(keyword, SAMPLES[keyword.group][keyword.name])
    in_conf = conf(f"{MACHINE}{line}\n")
    in_toml = toml(f"{MACHINE_TOML}\n{table}\n")
    assert in_conf == in_toml
    plain = conf(MACHINE + ("" if keyword.group not in FIRST else f"{FIRST[keyword.group][0]}\n"))
    is_alone = keyword.name != "Boards"  # which only counts beside SocketsPerBoard
    assert (in_conf != plain) is (keyword.effect is KeywordEffect.YES and is_alone)


@pytest.mark.parametrize("keyword", CHECKED, ids=name_of)
def test_case_does_not_count_in_slurm_conf(keyword: Keyword) -> None:
    line, _ = forms(keyword, SAMPLES[keyword.group][keyword.name])
    upper = re.sub(r"(\w+)=", lambda name: name[0].upper(), line)
    assert conf(f"{MACHINE}{upper}\n") == conf(f"{MACHINE}{line}\n")


@pytest.mark.parametrize("keyword", WITHOUT_EFFECT, ids=name_of)
def test_keyword_without_effect_is_reported_once(keyword: Keyword) -> None:
    written = keyword.name.replace("*", "Any")
    value = SAMPLES[keyword.group].get(keyword.name, "1")
    line = forms(keyword._replace(name=written), value)[0]
    again = line.replace("=m1", "=m2").replace("=long", "=short")
    text = f"{MACHINE}{line}\n{again if keyword.group in FIRST else ''}\n"
    notes = load(CONF, {CONF: text}).notes
    assert [note.partition(" has no effect")[0] for note in notes] == [f"{CONF}, line 3, {written}"]


def test_each_setting_of_daemons_and_jobs_is_read() -> None:
    """Programs read a setting as a field, or by its keyword as the controller prints it."""
    folder = Path(fairbank.__file__).parent
    declared = {*(folder / "wlm/config").iterdir(), folder / "wlm/core/settings.py"}
    files = {file for part in ("wlm", "cli") for file in (folder / part).rglob("*.py")} - declared
    words = {word for file in files for word in re.findall(r"\w+", file.read_text())}
    names = {*DaemonSettings.__struct_fields__, *JobSettings.__struct_fields__} - words
    assert names - {snake_case(word) for word in words} == set()


@pytest.mark.parametrize("keyword", REFUSED, ids=name_of)
def test_refused_keyword_gives_its_reason(keyword: Keyword) -> None:
    line, table = forms(keyword, "1")
    bad = conf_error(f"{MACHINE}{line.replace('*', 'Any')}\n")
    name = keyword.name.replace("*", "Any")
    assert bad.message == f"{CONF}, line 3, {name}: is not supported: {keyword.note}"
    assert bad.remedy == "remove it"
    bad = toml_error(f"{MACHINE_TOML}\n{table.replace('*', '_any')}\n")
    assert keyword.note in bad.message
