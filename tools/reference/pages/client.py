"""Reference page of the client settings and environment variables."""

from __future__ import annotations

from fairbank.cli.framework import client_settings as client


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
        "3. your file `~/.config/fairbank/client.toml` (below `XDG_CONFIG_HOME` if that is set);",
        f"4. the site's file `{client.SITE_FILE}`;",
        (
            "5. for `server`: the socket of your own bank in `~/.local/state/fairbank`"
            " (`XDG_STATE_HOME`) if"
        ),
        f"   it exists, else `{client.SITE_SOCKET}`.",
        "",
        'A line of a file is `KEY = "TEXT"`; other keys are refused.',
        "",
        "| Key | Environment | Meaning |",
        "| --- | --- | --- |",
        *(
            f"| `{key}` | `FAIRBANK_{key.upper()}` | {about} |"
            for key, about in client.KEYS.items()
        ),
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
