"""Reference pages: one function per page."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tools.reference.pages.agent import agent_page
from tools.reference.pages.client import client_page
from tools.reference.pages.commands import commands_page
from tools.reference.pages.metrics import metrics_page
from tools.reference.pages.refusals import refusals_page
from tools.reference.pages.routes import routes_page
from tools.reference.pages.settings import settings_page, site_page
from tools.reference.pages.states import states_page
from tools.reference.pages.wlm_commands import wlm_commands_page
from tools.reference.pages.wlm_differences import wlm_differences_page
from tools.reference.pages.wlm_settings import wlm_settings_page
from tools.reference.pages.wlm_states import wlm_states_page

PAGES: Mapping[str, Callable[[], str]] = {
    "settings": settings_page,
    "slurm": site_page,
    "client": client_page,
    "wlm-commands": wlm_commands_page,
    "wlm-settings": wlm_settings_page,
    "agent": agent_page,
    "routes": routes_page,
    "commands": commands_page,
    "states": states_page,
    "wlm-states": wlm_states_page,
    "wlm-differences": wlm_differences_page,
    "refusals": refusals_page,
    "metrics": metrics_page,
}
