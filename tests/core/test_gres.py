"""GRES in each form that Slurm's options and output have."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.core.errors import InvalidInput
from fairbank.core.gres import gres_counts, gres_texts, most_gres, parse_gpus, parse_gres
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


def test_most_gres_of_nodes_that_differ_in_type() -> None:
    most = {"gres/gpu": 6, "gres/gpu:a100": 4, "gres/gpu:t4": 4, "gres/nvme": 1}
    nodes = [gres_counts(parse_gres(text)) for text in ("gpu:a100:4,gpu:t4:2,nvme", "gpu:t4:4")]
    assert most_gres(nodes) == most
    assert gres_texts(most) == ["gpu:a100:4,nvme:1", "gpu:t4:4", "gpu:6"]


_parts = st.sampled_from(["gpu:a100", "gpu:t4", "gpu:1g.10gb", "gpu", "shard:t4", "shard", "nvme"])
_nodes = st.lists(st.dictionaries(_parts, st.integers(1, 9)), max_size=4)


@given(_nodes)
def test_most_gres_is_read_back_from_its_texts(nodes: list[dict[str, int]]) -> None:
    def counted(texts: list[str]) -> dict[str, int]:
        return most_gres(gres_counts(parse_gres(text)) for text in texts if text)

    most = counted([",".join(f"{part}:{count}" for part, count in node.items()) for node in nodes])
    assert counted(gres_texts(most)) == most
    if len(nodes) == 1:  # as in slurm.conf
        assert len(gres_texts(most)) == 1
