"""``python -m scripts.site [FOLDER]``: build the documentation site; any warning is an error."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import suffice
from scripts.site.accessible import accessible
from scripts.site.layout import REPOSITORY, lay_out
from scripts.site.versions import write_versions

IMPORTED = re.compile(r"""url\(['"]?(?:https?:)?//|@import""")
OUTWARD = re.compile(r'(?:href|src)="(https?://[^"]+)"')
FETCHED = re.compile(
    r'<(?:script|img|iframe|source)[^>]+src="(?:https?:)?//|<link(?![^>]+rel="(?:canonical|next|prev)")[^>]+href="(?:https?:)?//'
)


NEEDED = ("furo", "ipykernel", "myst_nb", "packaging", "sphinx", "sphinx_copybutton")
"""What the extra `docs` brings beside the demo."""


def require_extra() -> None:
    """End the program where what builds the pages is not installed."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        sys.exit(f"not installed: {', '.join(missing)}: pip install -e '.[docs]', or make docs")


def build(site: Path) -> int:
    """Build this version's pages into a site, and return how many there are; a wrong one ends the program."""
    require_extra()
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder, "source"), Path(folder, "html")
        lay_out(source)
        sphinx = [sys.executable, "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-q"]
        words = [*sphinx, "-c", str(REPOSITORY / "docs/site"), "-d", str(Path(folder, "doctrees"))]
        done = subprocess.run([*words, str(source), str(made)], cwd=REPOSITORY, check=False)
        if done.returncode:
            sys.exit("the documentation has warnings")
        pages = {page: accessible(page.read_text(encoding="utf-8")) for page in sorted(made.rglob("*.html"))}
        for page, text in pages.items():
            page.write_text(text, encoding="utf-8")
        check_requests(made, pages)
        site.mkdir(parents=True, exist_ok=True)
        version = site / suffice.__version__
        shutil.rmtree(version, ignore_errors=True)
        shutil.copytree(made, version)
    write_versions(site)
    outward = sorted({link for text in pages.values() for link in OUTWARD.findall(text)})
    (site / "external-links.txt").write_text("".join(f"{link}\n" for link in outward), encoding="utf-8")
    print(f"{len(pages)} pages in {version}")
    print(f"{len(outward)} addresses elsewhere, listed in external-links.txt and not fetched")
    return len(pages)


def check_requests(made: Path, pages: dict[Path, str]) -> None:
    """Refuse pages that would load anything from elsewhere."""
    guilty = [page.relative_to(made) for page, text in pages.items() if FETCHED.search(text)]
    styles = [path.relative_to(made) for path in made.rglob("*.css") if IMPORTED.search(path.read_text())]
    if guilty or styles:
        sys.exit(f"pages that load something from elsewhere: {guilty} {styles}")


if __name__ == "__main__":
    build(Path(*sys.argv[1:2] or ("build/docs",)))
