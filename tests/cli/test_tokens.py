"""Tokens: creation, authentication and revocation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cli.output_values import told
from tests.cli.served_site import Bank
from tests.cli.site import AYLA, CPU


def test_a_token_signs_in_over_the_network(
    changing: Run, own_bank: Bank, tmp_path: Path, surroundings: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "token"
    assert "its secret is in" in told(
        changing("token", "create", "laptop", "--scopes", "read", "-u", AYLA, "--output", place)
    )
    assert place.stat().st_mode & 0o777 == 0o600
    assert changing("token", "create", "other", "--output", place).code == 7
    surroundings.setenv("FAIRBANK_TOKEN_FILE", str(place))
    assert "(61001)" in told(changing("whoami", "--server", own_bank.http))
    assert changing("deposit", CPU, 1, "--reason", "x", "--server", own_bank.http).code == 4
    shown = changing("token", "list", "--json")
    assert place.read_text().strip() not in shown.out
    number = next(
        row["id"]
        for row in json.loads(changing("token", "list", "-u", AYLA, "--json").out)["data"]
        if row["label"] == "laptop"
    )
    told(changing("token", "revoke", number))
    assert changing("whoami", "--server", own_bank.http).code == 4


def test_a_new_secret_is_alone_on_stdout(changing: Run) -> None:
    result = changing("token", "create", "portal")
    assert result.out.startswith("fbk_")
    assert len(result.out.split()) == 1
    assert "is good until" in result.err
