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
    "pyarrow/_pyarrow_cpp_tests.*.so",
)
"""Arrow Flight, a protocol between servers that `suffice` speaks nowhere, and Arrow's own tests."""

OBJECT_STORE_OF_ARROW = ("pyarrow/_s3fs.*.so", "pyarrow/libarrow_s3.so*")
"""Arrow's client of S3. `suffice` has obstore; of all packages here, only Iceberg's opens it."""

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
    for pattern in unused_libraries(packages):
        for path in packages.glob(pattern):
            path.unlink()


def unused_libraries(packages: Path) -> tuple[str, ...]:
    """Return the patterns of libraries that none of the packages opens."""
    needs_arrows_client = (packages / "pyiceberg").is_dir()
    return UNUSED_LIBRARIES if needs_arrows_client else UNUSED_LIBRARIES + OBJECT_STORE_OF_ARROW


def check_dependencies(packages: Path) -> None:
    """Stop the build where a library that is left needs one of those that are not."""
    removed = {Path(pattern).name.partition(".so")[0] for pattern in unused_libraries(packages)}
    for library in packages.glob("pyarrow/*.so*"):
        read = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
        needed = {name.partition(".so")[0] for name in re.findall(r"\(NEEDED\).*\[(.+)\]", read)}
        if needed & removed:
            sys.exit(f"{library.name} needs {sorted(needed & removed)}: it has to stay")


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
    by_content: dict[bytes, list[Path]] = {}
    for library in [*packages.glob("pyarrow/*.so*"), *packages.glob("*.libs/*.so*")]:
        if not library.is_symlink():
            by_content.setdefault(hashlib.sha256(library.read_bytes()).digest(), []).append(library)
    for libraries in by_content.values():
        *copies, original = sorted(libraries, key=lambda path: (len(path.name), path))
        for copy in copies:
            copy.unlink()
            copy.symlink_to(os.path.relpath(original, copy.parent))


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
            checksum = base64.urlsafe_b64encode(hashlib.sha256(content).checksum()).rstrip(b"=").decode()
            writer.writerow([name, f"sha256={checksum}", len(content)])
        else:
            writer.writerow([name, digest, size])
    record.write_text(out.getvalue())
