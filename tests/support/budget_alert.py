"""Make an automation with a webhook as its block: ``python -m support.budget_alert FILE URL``.

In a process of its own: importing Prefect starts machinery that a test run does not want.
"""

from __future__ import annotations

import sys
from pathlib import Path

import yaml
from prefect.blocks.notifications import CustomWebhookNotificationBlock
from prefect.client.orchestration import get_client
from prefect.events.schemas.automations import AutomationCore
from prefect.utilities.asyncutils import run_coro_as_sync


async def automate(text: str, webhook: str) -> None:
    """Save the block, and make the automation of a text with it."""
    block = CustomWebhookNotificationBlock(
        name="alerts",
        url=webhook,
        json_data={"subject": "{{subject}}", "body": "{{body}}"},
        headers=None,
        cookies=None,
    )
    block_id = await block.save("suffice-alerts")
    automation = yaml.safe_load(text.replace("BLOCK_ID", str(block_id)))
    async with get_client() as client:
        await client.create_automation(AutomationCore.model_validate(automation))


if __name__ == "__main__":
    run_coro_as_sync(automate(Path(sys.argv[1]).read_text(encoding="utf-8"), sys.argv[2]))
