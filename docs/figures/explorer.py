"""Film the explorer of the demo's catalogue while a visitor moves the prior, for the README.

A browser without a window opens the release's page and drags the sliders with the mouse; every step of the
mouse is a frame. It needs ``suffice demo --dir demo``, the extras ``dev`` and ``plot``, and Chromium::

    PYTHONPATH=tests python docs/figures/explorer.py demo/site
"""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image

from support.browser import running_browser

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import FloatRect, Locator, Page

FILM = Path(__file__).with_name("explorer.gif")
WIDTH, COLOURS, LARGEST = 800, 40, 700_000
KEPT = ("--accent", "--plug-in", "--prior", "--warn", "--warn-soft", "--focus")
"""Colours of the page that few pixels have, and that are kept all the same."""
STEP, PAUSE = 70, 1500
"""Milliseconds of a frame while the mouse moves, and while it rests."""
QUESTION = "#explorer&statistic=cancelled&cell=LGA&cell=2&prior=Beta(0.4, 19.6)"
DRAGS = (("Strength", 0.7), ("Mean", 0.32), ("Strength", 0.38), ("Mean", 0.22))
"""Which slider is dragged, and to which share of its length."""
POINTER = """
const pointer = document.createElementNS("http://www.w3.org/2000/svg", "svg");
pointer.setAttribute("viewBox", "0 0 20 28");
pointer.style.cssText = "position:fixed;width:20px;z-index:9;pointer-events:none";
pointer.innerHTML = '<path d="M1 1v20l5-4 4 9 4-2-4-8h7z" fill="#111" stroke="#fff" stroke-width="1.5"/>';
document.body.append(pointer);
addEventListener("mousemove", ({ clientX, clientY }) => {
  pointer.style.left = `${clientX}px`;
  pointer.style.top = `${clientY}px`;
});
"""


def main(site: Path) -> None:
    """Film, and write the film beside this script."""
    page_file = next((site / "releases").rglob("index.html")).resolve()
    with running_browser() as browser:
        context = browser.new_context(
            viewport={"width": 960, "height": 1000}, device_scale_factor=2, color_scheme="light"
        )
        page = context.new_page()
        page.goto(f"{page_file.as_uri()}{QUESTION}")
        settle(page)
        page.locator(".explorer-body").evaluate("body => body.scrollIntoView()")
        page.evaluate(POINTER)
        read = "name => getComputedStyle(document.body).getPropertyValue(name)"
        write(list(filmed(page)), [page.evaluate(read, name) for name in KEPT])


def filmed(page: Page) -> Iterator[tuple[Image.Image, int]]:
    """Drag one slider after the other; yield pictures and for how long each is shown."""
    sliders = {name: slider(page, name) for name, _ in DRAGS}
    clip = picture_of(page)
    left, top = sliders[DRAGS[0][0]]
    page.mouse.move(left + 40, top + 60)
    yield shot(page, clip), PAUSE
    for name, share in DRAGS:
        x, y = slider(page, name)
        page.mouse.move(x, y)
        yield shot(page, clip), 3 * STEP
        page.mouse.down()
        box = box_of(page.get_by_label(name, exact=True))
        end = box["x"] + box["width"] * share
        steps = max(4, round(abs(end - x) / 7))
        for step in range(1, steps + 1):
            # Slowly at both ends, as a hand moves.
            way = (3 - 2 * step / steps) * (step / steps) ** 2
            page.mouse.move(x + (end - x) * way, y)
            settle(page)
            yield shot(page, clip), STEP
        page.mouse.up()
        settle(page)
        yield shot(page, clip), PAUSE


def slider(page: Page, name: str) -> tuple[float, float]:
    """Where the thumb of a slider is."""
    field = page.get_by_label(name, exact=True)
    box = box_of(field)
    share = field.evaluate("({ value, min, max }) => (value - min) / (max - min)")
    thumb = 16
    return box["x"] + thumb / 2 + (box["width"] - thumb) * share, box["y"] + box["height"] / 2


def box_of(part: Locator) -> FloatRect:
    """Where a part of the page is."""
    box = part.bounding_box()
    if box is None:
        sys.exit("the page has no such part")
    return box


def settle(page: Page) -> None:
    """Wait until the newest question is answered and painted."""
    fresh = page.locator(".explorer-answers:not(.is-working) td[data-kind='noise-aware']").first
    fresh.wait_for()
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    page.wait_for_timeout(60)
    fresh.wait_for()


def picture_of(page: Page) -> FloatRect:
    """The part of the page that is filmed: what is asked, down to the prior, and the answer beside it."""
    body, prior = (box_of(page.locator(part).first) for part in (".explorer-body", "fieldset:has(.sliders)"))
    room = 16
    return {
        "x": body["x"] - room,
        "y": body["y"] - room,
        "width": body["width"] + 2 * room,
        "height": prior["y"] + prior["height"] - body["y"] + 2 * room,
    }


def shot(page: Page, clip: FloatRect) -> Image.Image:
    """One picture, as wide as the film."""
    picture = Image.open(io.BytesIO(page.screenshot(clip=clip, animations="disabled"))).convert("RGB")
    height = round(picture.height * WIDTH / picture.width)
    return picture.resize((WIDTH, height), Image.Resampling.LANCZOS)


def write(frames: list[tuple[Image.Image, int]], kept: list[str]) -> None:
    """Write frames as one looping file, all in the same few colours, these among them."""
    pictures, times = zip(*frames, strict=True)
    height = pictures[0].height
    strip = Image.new("RGB", (WIDTH, 2 * height + 50 * len(kept)))
    for row, picture in enumerate((pictures[0], pictures[len(pictures) // 2])):
        strip.paste(picture, (0, row * height))
    for row, colour in enumerate(kept):
        strip.paste(colour, (0, 2 * height + 50 * row, WIDTH, 2 * height + 50 * (row + 1)))
    palette = strip.quantize(COLOURS, method=Image.Quantize.MEDIANCUT)
    few = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]
    few[0].save(FILM, save_all=True, append_images=few[1:], duration=list(times), loop=0, optimize=True)
    size = FILM.stat().st_size
    print(f"{FILM.name}: {len(few)} frames of {WIDTH} x {height}, {size:,} bytes")
    if size > LARGEST:
        sys.exit(f"the film is larger than {LARGEST:,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
