"""Options of the embedded workload manager: refused ones are named, and none is in two lists."""

from __future__ import annotations

import pytest

from fairbank.core.errors import InvalidInput
from fairbank.core.submission.options import OPTIONS
from fairbank.core.submission.support import NO_EFFECT, REFUSED, check_supported


def test_lists_name_options_and_no_option_twice() -> None:
    assert NO_EFFECT | REFUSED.keys() <= {option.name for option in OPTIONS}
    assert not NO_EFFECT & REFUSED.keys()


@pytest.mark.parametrize(
    ("name", "text"), [*dict.fromkeys(REFUSED, "1").items(), ("exclusive", "mcs")]
)
def test_option_that_is_not_built_is_refused_by_name(name: str, text: str) -> None:
    with pytest.raises(InvalidInput, match=f"--{name}") as refused:
        check_supported({"time": "10", name: text})
    assert refused.value.field == f"--{name}"


def test_options_without_effect_are_accepted() -> None:
    accepted = {"gres": "none", "exclusive": "user", "mpi": "none"}
    check_supported({**dict.fromkeys(NO_EFFECT, "1"), **accepted})
