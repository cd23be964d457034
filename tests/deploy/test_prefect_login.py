"""What Prefect's own server has instead of roles: one login, which is asked for everything but its health."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

pytestmark = pytest.mark.audit

PATHS = (
    ("GET", "/api/admin/version"),
    ("POST", "/api/deployments/"),
    ("POST", "/api/work_pools/"),
    ("POST", "/api/flow_runs/filter"),
    ("POST", "/api/block_documents/"),
)


def test_without_its_login_nothing_is_answered() -> None:
    for login in (None, ("admin", "wrong")):
        assert set(answers(login, PATHS)) == {401}
        assert answers(login, [("GET", "/api/health")]) == [200]
    assert 401 not in answers(("admin", "secret"), PATHS[:2]), "the control: with it, it is another matter"


def answers(login: tuple[str, str] | None, requests: Iterable[tuple[str, str]]) -> list[int]:
    """Return the statuses of a server that demands a login."""
    from prefect.server.api.server import create_app
    from prefect.settings import PREFECT_SERVER_API_AUTH_STRING, temporary_settings

    async def ask() -> list[int]:
        with temporary_settings({PREFECT_SERVER_API_AUTH_STRING: "admin:secret"}):
            transport = httpx.ASGITransport(app=create_app(ephemeral=True, ignore_cache=True))
            async with httpx.AsyncClient(transport=transport, base_url="http://prefect") as client:
                return [
                    (await client.request(method, path, auth=login)).status_code for method, path in requests
                ]

    return asyncio.run(ask())
