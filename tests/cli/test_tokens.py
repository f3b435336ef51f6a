"""Tokens: creation, authentication and revocation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cli.output_values import output_of
from tests.cli.served_site import Bank
from tests.cli.site import AYLA, CPU


def test_token_authenticates_over_the_network(
    changing: Run, own_bank: Bank, tmp_path: Path, clean_env: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "token"
    assert "its secret is in" in output_of(
        changing("token", "create", "laptop", "--scopes", "read", "-u", AYLA, "--output", path)
    )
    assert path.stat().st_mode & 0o777 == 0o600
    assert changing("token", "create", "other", "--output", path).code == 7
    clean_env.setenv("FAIRBANK_TOKEN_FILE", str(path))
    assert "(61001)" in output_of(changing("whoami", "--server", own_bank.http))
    assert changing("deposit", CPU, 1, "--reason", "x", "--server", own_bank.http).code == 4
    shown = changing("token", "list", "--json")
    assert path.read_text().strip() not in shown.out
    number = next(
        row["id"]
        for row in json.loads(changing("token", "list", "-u", AYLA, "--json").out)["data"]
        if row["label"] == "laptop"
    )
    output_of(changing("token", "revoke", number, "--yes"))
    assert changing("whoami", "--server", own_bank.http).code == 4


def test_new_secret_is_the_only_text_on_stdout(changing: Run) -> None:
    result = changing("token", "create", "portal")
    assert result.out.startswith("fbk_")
    assert len(result.out.split()) == 1
    assert "is good until" in result.err
