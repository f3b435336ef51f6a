"""Names as wide as Slurm's: examples from real sites, and a strategy for any name."""

from __future__ import annotations

from hypothesis import strategies as st

from fairbank.core.ids import is_name

EXAMPLES = (
    "122825900664",
    "193000-ab0001",
    "bio@gpu",
    "dept bio",
    "a" * 66,
    "1080ti-long",
    "128x24",
    "16core",
    "12hr",
    "1d",
    "2day",
    "CORP\\bin",
    "ch|em",
    "a/b",
    "caf\u00e9",
)
NAMES = st.sampled_from(EXAMPLES) | (
    st.text(st.characters(exclude_categories=["C", "Zl", "Zp"]), min_size=1, max_size=80)
    | st.text("aZ09_.-@ \\|/:;#%&()[]", min_size=1, max_size=12)
).filter(is_name)
