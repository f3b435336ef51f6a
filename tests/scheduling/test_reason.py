"""Slurm's reasons, each with its sentence. All are in tests/golden/scheduling/reasons.txt. After an
intended change: WRITE_GOLDEN=1 pytest tests/scheduling/test_reason.py, and review the difference.
"""

from __future__ import annotations

from itertools import product

import pytest

from fairbank.core.errors import NotFound
from fairbank.priority.limits.reasons import ASSOC, QOS, LimitKind, reason
from fairbank.scheduling.reason import EARLIER_NAMES, NAMES, explain_reason
from tests.support.golden import GOLDEN, kept

TRES = ("cpu", "mem", "energy", "node", "billing", "gres/gpu", "license/matlab", "bb/cray", "vmem")


def test_every_reason_has_a_sentence_of_its_own() -> None:
    table = "".join(
        f"{number:3} {name}\n    {explain_reason(name)}\n" for number, name in sorted(NAMES.items())
    )
    table += "".join(f"    {name}\n    {explain_reason(name)}\n" for name in EARLIER_NAMES)
    assert table == kept(GOLDEN / "scheduling" / "reasons.txt", table)


def test_table_has_the_218_strings_of_slurm() -> None:
    assert set(range(221)) - NAMES.keys() == {34, 76, 77}
    assert sorted(number for number, name in NAMES.items() if name == "PartitionDown") == [6, 19]
    for text in map(explain_reason, NAMES.values()):
        assert text.endswith(".")
        assert "  " not in text


def test_every_name_that_limits_give_is_in_the_table() -> None:
    for owner, kind in product((ASSOC, QOS), LimitKind):
        for tres in (None, *TRES):
            try:
                name = reason(owner, kind, tres)
            except KeyError:
                continue  # no such limit
            if owner == QOS or "Min" not in kind.value.removesuffix("Mins"):
                assert explain_reason(name).endswith(".")


def test_unknown_reason_is_reported() -> None:
    with pytest.raises(NotFound, match="'AssocMinMood' is not a reason of Slurm"):
        explain_reason("AssocMinMood")
