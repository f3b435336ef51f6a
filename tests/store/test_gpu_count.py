"""Number of GPUs in a TRES text: SQL counts what `core.tres` counts and parses."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import create_engine, literal, select

from fairbank.core.tres import gpu_count, parse_quantities, tres_name
from fairbank.store.sql.conditions import GpuCount

NAMES = (
    "cpu",
    "mem",
    "gpu",
    "GRES/gpu",
    "gpu:T4",
    "gres/gpu:a100",
    "gres/gpu:x:gpu",
    'gres/gpu:"\\',
    "gres/mygpu",
    "gres/gpus",
    "license/gpu:a",
)
texts = st.lists(
    st.tuples(st.sampled_from(NAMES), st.integers(0, 10**9 - 1).map(str) | st.just("0.5")),
    unique_by=lambda part: tres_name(part[0]),
).map(lambda parts: ",".join(f"{name}={number}" for name, number in parts))


@given(texts)
def test_gpus_are_those_of_the_parsed_text(text: str) -> None:
    counts = parse_quantities(text, field="tres") if text else {}
    types = sum(int(count) for name, count in counts.items() if name.startswith("gres/gpu:"))
    assert gpu_count(text) == int(counts.get("gres/gpu", types))


@given(
    texts
    | texts.map(lambda text: text.replace("1", "1K").replace("0.5", ".5").replace("22", "2" * 12))
)
def test_sql_counts_the_same_gpus(text: str) -> None:
    with create_engine("sqlite://").connect() as connection:
        assert connection.scalar(select(GpuCount(literal(text)))) == gpu_count(text)
