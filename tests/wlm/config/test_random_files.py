"""Random files of both forms give settings or InvalidInput, and nothing else."""

from __future__ import annotations

from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.core.errors import InvalidInput
from fairbank.wlm.config.entries import KEYWORDS
from fairbank.wlm.config.forms import ValueForm
from fairbank.wlm.config.keyword import Keyword
from fairbank.wlm.config.keywords import SETTINGS
from fairbank.wlm.core.settings import WlmSettings
from tests.wlm.config.files import CONF, MACHINE, MACHINE_TOML, TOML, load
from tests.wlm.config.samples import SAMPLES

TEXTS = [text for table in SAMPLES.values() for text in table.values()]
ODD = "UNLIMITED ALL DEFAULT -1 nan inf 1e9 0x10 a[1-3 a]] , =, \\ # \" ' 1:2:3:4 \u0663 \0"
ONCE = [keyword for keyword in SETTINGS if keyword.name in SAMPLES.get(keyword.group, {})]
VALUES = st.one_of(
    st.sampled_from(TEXTS), st.sampled_from(ODD.split(" ")), st.text(max_size=12), st.just("")
)
NAMES = st.one_of(st.sampled_from([keyword.name for keyword in KEYWORDS]), st.text(max_size=8))
LINES = st.lists(
    st.one_of(
        st.builds("{}={}".format, NAMES, VALUES),
        st.builds('NodeName={} {}="{}"'.format, VALUES, NAMES, VALUES),
        st.builds("PartitionName={} Nodes=n1 {}={}".format, VALUES, NAMES, VALUES),
        st.builds("Include {}".format, st.sampled_from([CONF, "more", "../more", "\0"])),
        st.just("\\"),
        st.text(max_size=20),
    ),
    max_size=8,
).map("\n".join)
SCALARS = st.one_of(
    st.integers(-(2**70), 2**70).map(str),
    st.floats().map(str),
    VALUES.map(repr),
    st.sampled_from(
        ["true", "1979-05-27", "[]", "{}", "[1, [2]]", "{a = 1}", "[{a = 1}]", "'''\n'''"]
    ),
)
ROWS = st.lists(
    st.one_of(
        st.sampled_from(KEYWORDS).map(
            lambda keyword: f"[{keyword.group}]" if keyword.group in SAMPLES else "[[qos]]"
        ),
        st.sampled_from(["[[nodes]]", "[[partitions]]", "[[qos]]", "[[associations]]", "[x.y]"]),
        st.builds(
            "{} = {}".format, st.sampled_from([keyword.key for keyword in KEYWORDS]), SCALARS
        ),
        st.text(max_size=20),
    ),
    max_size=8,
).map("\n".join)


def check(name: str, files: dict[str, str | bytes]) -> None:
    try:
        loaded = load(name, files)
    except InvalidInput as bad:
        assert str(bad)
        assert bad.remedy
    else:
        assert isinstance(loaded.settings, WlmSettings)


@given(LINES, LINES)
def test_random_lines_of_slurm_conf(text: str, more: str) -> None:
    check(CONF, {CONF: f"{MACHINE}{text}", "more": more})


@given(ROWS)
def test_random_tables_of_wlm_toml(text: str) -> None:
    check(TOML, {TOML: f"{text}\n{MACHINE_TOML}"})
    check(TOML, {TOML: f"{MACHINE_TOML}\n{text}"})


@pytest.mark.parametrize("name", [CONF, TOML])
@given(content=st.binary(max_size=200))
def test_random_bytes(name: str, content: bytes) -> None:
    check(name, {name: content})


@given(st.sampled_from([keyword.form for keyword in KEYWORDS if keyword.form]), VALUES)
def test_random_values(form: ValueForm, text: str) -> None:
    """Every reader is reached, which random files do not do."""
    try:
        form.read(text, "KEYWORD")
    except InvalidInput as bad:
        assert bad.message


@given(st.sets(st.sampled_from(ONCE)))
def test_random_settings_are_equal_in_both_forms(keywords: set[Keyword]) -> None:
    by_field = {keyword.targets[0]: keyword for keyword in keywords}  # not two for the same
    chosen = sorted(by_field.values(), key=lambda keyword: keyword.group)
    lines = [f"{keyword.name}={SAMPLES[keyword.group][keyword.name]}" for keyword in chosen]
    tables = [
        "\n".join([f"[{group}]", *(f'{row.key} = "{SAMPLES[group][row.name]}"' for row in rows)])
        for group, rows in groupby(chosen, key=lambda keyword: keyword.group)
    ]
    in_conf = load(CONF, {CONF: "\n".join([*lines, MACHINE])})
    in_toml = load(TOML, {TOML: "\n".join([*tables, MACHINE_TOML])})
    assert in_conf.settings == in_toml.settings
    assert len(in_conf.notes) == len(in_toml.notes)
