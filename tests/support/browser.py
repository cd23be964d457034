"""A real browser, where this machine has one."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

COMMANDS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@contextmanager
def running_browser() -> Iterator[Browser]:
    """Start Chromium without a window: the one of the system, or the one that Playwright installed.

    Where there is none, the test is skipped and says what to install; under ``CHROMIUM=required`` it fails.
    """
    from playwright.sync_api import Error, sync_playwright

    path = next(filter(None, map(shutil.which, COMMANDS)), None)
    with sync_playwright() as playwright:
        try:
            # A browser run by root in a container has no sandbox; it sees pages of these tests alone.
            browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        except Error:
            if os.environ.get("CHROMIUM") == "required":
                raise
            pytest.skip("no browser can be started: install the system's package chromium")
        try:
            yield browser
        finally:
            browser.close()
