"""Reference page of the client settings and environment variables."""

from __future__ import annotations

from fairbank.cli.framework import client_settings as client
from fairbank.client_file import KEYS, SITE_FILE


def client_page() -> str:
    """Return the page with the settings that commands read to find the bank."""
    lines = [
        "# Client settings",
        "",
        (
            "Commands read these keys to find the bank and to authenticate. The first place that"
            " sets a key wins:"
        ),
        "",
        "1. options: `--server`, `-M`;",
        "2. the environment: the key in capitals after `FAIRBANK_`, such as `FAIRBANK_SERVER`;",
        "3. for `server`: the socket in the bank's settings that `FAIRBANK_CONFIG` names;",
        "4. your file `~/.config/fairbank/client.toml` (below `XDG_CONFIG_HOME` if that is set);",
        "5. for `server`: the socket of your own bank, if `fairbank init` made one: its settings",
        "   are `~/.local/state/fairbank/fairbank.toml` (below `XDG_STATE_HOME` if that is set);",
        f"6. the site's file `{SITE_FILE}`;",
        f"7. for `server`: `{client.SITE_SOCKET}`.",
        "",
        "A bank named in 3 or 5 that is not running is an error (exit code 6): the commands never",
        "ask the host's bank in its place. Each answer names its bank: a table in its line `As of`",
        "and [JSON](json.md) in `bank`. The result of a change ends with it: `bank darwin`.",
        "",
        'A line of a file is `KEY = "TEXT"`; other keys are refused.',
        "",
        "| Key | Environment | Meaning |",
        "| --- | --- | --- |",
        *(f"| `{key}` | `FAIRBANK_{key.upper()}` | {about} |" for key, about in KEYS.items()),
        "",
        "On a Unix socket the kernel names the user. Over the network a token is used if",
        "`token_file` names one, else MUNGE. See [Authentication](authentication.md).",
        "",
        "## Other environment variables",
        "",
        "| Variable | Meaning |",
        "| --- | --- |",
        *(f"| `{name}` | {about} |" for name, about in client.ENVIRONMENT.items()),
    ]
    return "\n".join(lines) + "\n"
