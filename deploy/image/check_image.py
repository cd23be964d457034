"""Check what is in an image: ``check_image.py ROOT``, where ROOT is its unpacked or mounted root.

Prints one line for each thing that must not be there, and ends with 1 where there is one: compilers and
package managers of its own, tests and headers, bytecode that is missing, files with secrets in name or
content, files that the container's user could change, programs that change the user, no inventory.
"""

from __future__ import annotations

import argparse
import json
import re
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

COMPILERS = re.compile(
    r"(?:.*-)?(?:cc|c\+\+|cpp|gcc|g\+\+|clang|clang\+\+|ld|as|make|rustc|cargo|go)(?:-[\d.]+)?"
)
SECRET_NAMES = re.compile(
    r"\.env(?:\..*)?|.*\.(?:key|p12|pfx|jks)|id_(?:rsa|ecdsa|ed25519)|\.netrc|\.pgpass|\.pypirc"
)
SECRET_CONTENT = re.compile(
    rb"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----\s+[A-Za-z0-9+/]{40}|AKIA[0-9A-Z]{16}|://[^/\s:@'\"{}<>()\[\]]+:[^/\s:@'\"{}<>()\[\]]+@"
)
TEXT_OF_OURS = ("suffice", "suffice-*")
PREFIX = Path("opt/suffice")
USER = 10001


def findings(root: Path) -> Iterator[str]:
    """Yield what must not be so."""
    packages = next((root / PREFIX).glob("lib/python3*/site-packages"), None)
    if packages is None:
        yield f"{PREFIX} holds no Python packages"
        return
    yield from programs(root)
    yield from left_overs(packages)
    yield from secrets(root, packages)
    yield from writable(root)
    yield from inventory(root, packages)


def programs(root: Path) -> Iterator[str]:
    """Find compilers, and pip beside the application."""
    for folder in ("bin", "usr/bin", "usr/local/bin", str(PREFIX / "bin")):
        for path in sorted((root / folder).glob("*")):
            if COMPILERS.fullmatch(path.name):
                yield f"a compiler: {path.relative_to(root)}"
    for path in (root / PREFIX).glob("lib/python3*/site-packages/pip"):
        yield f"a package manager: {path.relative_to(root)}"


def left_overs(packages: Path) -> Iterator[str]:
    """Find what only tests and compilers read, and modules without bytecode."""
    for path in sorted(packages.rglob("*")):
        name = path.relative_to(packages)
        if path.is_dir() and path.name == "tests" and len(name.parts) > 1:
            yield f"tests: {name}"
        elif path.suffix in {".a", ".c", ".h", ".pyx"} and path.is_file():
            yield f"for compilers: {name}"
    for module in (packages / "suffice").rglob("*.py"):
        if not any(module.parent.glob(f"__pycache__/{module.stem}.cpython-*.pyc")):
            yield f"no bytecode: {module.relative_to(packages)}"


def secrets(root: Path, packages: Path) -> Iterator[str]:
    """Find secrets by the names of all files, and in what this repository put there."""
    for path in sorted(root.rglob("*")):
        if SECRET_NAMES.fullmatch(path.name) and path.is_file():
            yield f"a secret by its name: {path.relative_to(root)}"
    ours = [path for pattern in TEXT_OF_OURS for top in packages.glob(pattern) for path in top.rglob("*")]
    for path in [*ours, *(root / "var/lib/suffice").rglob("*"), *(root / "usr/local/lib/suffice").rglob("*")]:
        is_text = path.is_file() and path.suffix not in {".pyc", ".nbc", ".nbi"}
        if is_text and SECRET_CONTENT.search(path.read_bytes()):
            yield f"a secret by its content: {path.relative_to(root)}"


def writable(root: Path) -> Iterator[str]:
    """Find what the container's user could change, and programs that would make it another user."""
    for path in sorted((root / PREFIX).rglob("*")):
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            continue
        if status.st_mode & stat.S_IWOTH or USER in {status.st_uid, status.st_gid}:
            yield f"can be written by the user: {path.relative_to(root)}"
        if status.st_mode & (stat.S_ISUID | stat.S_ISGID):
            yield f"changes the user: {path.relative_to(root)}"


def inventory(root: Path, packages: Path) -> Iterator[str]:
    """Compare the inventory with what is installed."""
    path = root / PREFIX / "share/suffice/sbom.cdx.json"
    if not path.is_file():
        yield "no inventory"
        return
    document = json.loads(path.read_text())
    if document.get("bomFormat") != "CycloneDX":
        yield "the inventory is not of CycloneDX"
    listed = {(_normal(part["name"]), part.get("version")) for part in document.get("components", ())}
    installed = set()
    for folder in packages.glob("*.dist-info"):
        name, _, version = folder.name.removesuffix(".dist-info").partition("-")
        installed.add((_normal(name), version))
    for name, version in sorted(installed - listed):
        yield f"not in the inventory: {name} {version}"
    for name, version in sorted(listed - installed):
        yield f"in the inventory only: {name} {version}"


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def main() -> None:
    """Print the findings."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("root", type=Path)
    faults = list(findings(parser.parse_args().root))
    print("\n".join(faults) if faults else "nothing that must not be there")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
