"""Remove from installed packages what only tests and compilers read, and symbols that no loader reads."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import os
import subprocess
from pathlib import Path

TEST_FOLDERS = ("tests",)
SOURCES_OF_COMPILERS = (".a", ".c", ".cc", ".cpp", ".h", ".hpp", ".pxd", ".pxi", ".pyi", ".pyx")
HEADER_FOLDERS = ("pyarrow/include", "numpy/_core/include")
UNUSED_LIBRARIES = (
    "pyarrow/_flight.*.so",
    "pyarrow/_substrait.*.so",
    "pyarrow/libarrow_flight.so*",
    "pyarrow/libarrow_python_flight.so*",
    "pyarrow/libarrow_substrait.so*",
)
"""Servers of Arrow Flight and plans of Substrait: `suffice` opens neither."""

LEAST_GAIN = 65536
"""Bytes; a library that would lose less stays as its wheel has it."""


def shrink(prefix: Path) -> None:
    """Shrink an installation, and keep its packages' lists of files true."""
    packages = next(prefix.glob("lib/python3*/site-packages"))
    remove_unneeded(packages)
    stripped = strip_symbols(prefix, packages)
    link_copies(packages)
    for record in packages.glob("*.dist-info/RECORD"):
        rewrite_record(record, stripped)


def remove_unneeded(packages: Path) -> None:
    """Remove tests, headers, sources of extensions and libraries that nothing opens."""
    for folder, _, names in os.walk(packages, topdown=False):
        parts = Path(folder).relative_to(packages).parts
        is_test = any(part in TEST_FOLDERS for part in parts[1:])  # `tests/` itself may be a package
        is_header = "/".join(parts).startswith(HEADER_FOLDERS)
        for name in names:
            if is_test or is_header or name.endswith(SOURCES_OF_COMPILERS):
                Path(folder, name).unlink()
        if not os.listdir(folder):
            Path(folder).rmdir()
    for pattern in UNUSED_LIBRARIES:
        for path in packages.glob(pattern):
            path.unlink()


def strip_symbols(prefix: Path, packages: Path) -> set[Path]:
    """Strip shared libraries, but for those that would no longer load: patched ones may not be laid out anew."""
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
    """Make links of libraries that stand beside themselves under several names, as wheels have to carry them."""
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
