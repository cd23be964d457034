"""Remove from installed packages what only tests and compilers read, and symbols that no loader reads."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path

TEST_FOLDERS = ("tests",)
OTHER_TEST_FOLDERS = ("tornado/test",)  # with a private key; a folder `test` may be code elsewhere
SOURCES_OF_COMPILERS = (".a", ".c", ".cc", ".cpp", ".h", ".hpp", ".pxd", ".pxi", ".pyi", ".pyx")
HEADER_FOLDERS = ("pyarrow/include", "numpy/_core/include")
UNUSED_LIBRARIES = (
    "pyarrow/_flight.*.so",
    "pyarrow/libarrow_flight.so*",
    "pyarrow/libarrow_python_flight.so*",
)
"""Arrow Flight, a protocol between servers: `suffice` speaks it nowhere."""

LEAST_GAIN = 65536
"""Bytes; a library that would lose less stays as its wheel has it."""


def shrink(prefix: Path) -> None:
    """Shrink an installation, and keep its packages' lists of files true."""
    packages = next(prefix.glob("lib/python3*/site-packages"))
    remove_unneeded(packages)
    check_dependencies(packages)
    stripped = strip_symbols(prefix, packages)
    link_copies(packages)
    for record in packages.glob("*.dist-info/RECORD"):
        rewrite_record(record, stripped)


def remove_unneeded(packages: Path) -> None:
    """Remove tests, headers, sources of extensions and libraries that nothing opens."""
    for folder, _, names in os.walk(packages, topdown=False):
        parts = Path(folder).relative_to(packages).parts
        is_test = any(part in TEST_FOLDERS for part in parts[1:])  # `tests/` itself may be a package
        is_test |= "/".join(parts).startswith(OTHER_TEST_FOLDERS)
        is_header = "/".join(parts).startswith(HEADER_FOLDERS)
        for name in names:
            if is_test or is_header or name.endswith(SOURCES_OF_COMPILERS):
                Path(folder, name).unlink()
        if not any(Path(folder).iterdir()):
            Path(folder).rmdir()
    for pattern in UNUSED_LIBRARIES:
        for path in packages.glob(pattern):
            path.unlink()


def check_dependencies(packages: Path) -> None:
    """Stop the build where a library that is left needs one of those that are not."""
    removed = {Path(pattern).name.partition(".so")[0] for pattern in UNUSED_LIBRARIES}
    for library in packages.glob("pyarrow/*.so*"):
        read = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
        needed = {name.partition(".so")[0] for name in re.findall(r"\(NEEDED\).*\[(.+)\]", read)}
        if needed & removed:
            sys.exit(f"{library.name} needs {sorted(needed & removed)}: leave it out of UNUSED_LIBRARIES")


def strip_symbols(prefix: Path, packages: Path) -> set[Path]:
    """Strip shared libraries, but for patched ones that would no longer load."""
    python = prefix / "bin" / "python"
    stripped = set()
    for library in sorted(
        path for path in packages.rglob("*.so*") if path.is_file() and not path.is_symlink()
    ):
        small = library.with_name(library.name + ".stripped")
        subprocess.run(["strip", "--strip-unneeded", "-o", small, library], check=True)
        if library.stat().st_size - small.stat().st_size < LEAST_GAIN:
            small.unlink()
            continue
        whole = library.with_name(library.name + ".whole")
        small.chmod(library.stat().st_mode & 0o777)
        loaded = loads(python, library)
        library.rename(whole)
        small.rename(library)
        if loaded and not loads(python, library):
            whole.replace(library)
        else:
            whole.unlink()
            stripped.add(library)
    return stripped


def loads(python: Path, library: Path) -> bool:
    """Whether the dynamic loader takes a library."""
    command = [python, "-I", "-c", "import ctypes, sys; ctypes.CDLL(sys.argv[1])", library]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def link_copies(packages: Path) -> None:
    """Make links of a library's other names: a wheel cannot hold links, and has copies."""
    by_content: dict[tuple[Path, bytes], list[Path]] = {}
    for library in sorted(path for path in packages.glob("pyarrow/*.so*") if not path.is_symlink()):
        key = library.parent, hashlib.sha256(library.read_bytes()).digest()
        by_content.setdefault(key, []).append(library)
    for libraries in by_content.values():
        *copies, original = sorted(libraries, key=lambda path: (len(path.name), path.name))
        for copy in copies:
            copy.unlink()
            copy.symlink_to(original.name)


def rewrite_record(record: Path, stripped: set[Path]) -> None:
    """Leave out what is gone, and state the hash of what was stripped."""
    packages = record.parent.parent
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for name, digest, size in csv.reader(record.read_text().splitlines()):
        path = packages / name
        if not path.exists():
            continue
        if path.resolve() in stripped:
            content = path.read_bytes()
            found = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            writer.writerow([name, f"sha256={found}", len(content)])
        else:
            writer.writerow([name, digest, size])
    record.write_text(out.getvalue())
