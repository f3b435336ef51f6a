"""GRES in each form that Slurm's options and output have."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.core.errors import InvalidInput
from fairbank.core.gres import parse_gpus, parse_gres
from tests.support.gres import GPU_EXAMPLES, GRES_EXAMPLES


@pytest.mark.parametrize(("text", "gres"), GRES_EXAMPLES)
def test_gres_is_read_as_slurm_reads_it(text: str, gres: list[tuple[str, str, int]]) -> None:
    assert parse_gres(text) == gres


@pytest.mark.parametrize(("text", "gpus"), GPU_EXAMPLES)
def test_option_for_gpus_is_read_as_slurm_reads_it(text: str, gpus: list[tuple[str, int]]) -> None:
    assert parse_gpus(text) == [("gpu", *gpu) for gpu in gpus]


@pytest.mark.parametrize(
    "text", ["", ",", "gpu:", "gpu::2", ":2", "gpu:a:b:2", "gpu:a b:2", "gpu(", "a(1)b", "gpu:\n1"]
)
def test_other_text_is_no_gres(text: str) -> None:
    with pytest.raises(InvalidInput, match="is not NAME") as error:
        parse_gres(text, field="--gres")
    assert error.value.field == "--gres"


_words = st.text(
    st.characters(exclude_categories=["Cc", "Cs", "Zs", "Zl", "Zp"], exclude_characters=",:=()/"),
    min_size=1,
    max_size=12,
).filter(lambda word: not word.startswith("-"))


@given(name=_words, type_=_words.filter(lambda text: not text.isdigit()), count=st.integers(1, 999))
def test_any_name_and_type_is_read_back(name: str, type_: str, count: int) -> None:
    if type_ != "no_consume" and name != "gres":
        assert parse_gres(f"{name}:{type_}:{count}(S:0-1)") == [(name, type_, count)]
