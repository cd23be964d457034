"""Files that commands write: new ones, or ones of ours that --overwrite replaces; never a source or store.

Several named priors from a file: of the command line alone, as priors elsewhere are text.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from suffice.data_files.tables import MARK, METADATA_SUFFIX
from suffice.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_LARGEST = 2**20
_MOST_PRIORS = 100


def read_priors(path: Path) -> dict[str, str]:
    """Read names and priors: ``flat: Beta(1, 1)`` a line in YAML, or the same in TOML or JSON.

    Raises
    ------
    UsageError
        Where the file cannot be read, or holds anything else than two named priors or more.
    """
    from suffice.pipeline.terms.declaration.spec_text import read_json, read_small_file
    from suffice.pipeline.terms.declaration.spec_yaml import read_yaml  # yaml is slow to import

    place = f"--priors {path}"
    try:
        data = read_small_file(str(path), _LARGEST)
        text = None if data is None else data.decode("utf-8-sig")
    except (OSError, ValueError):
        message = f"{place}: the file cannot be read: name a YAML, TOML or JSON file in UTF-8"
        raise UsageError(message) from None
    if text is None:
        message = f"{place}: the file is larger than 1 MiB"
        raise UsageError(message)
    content: Any
    if path.suffix == ".toml":
        import tomllib

        try:
            content = tomllib.loads(text)
        except (ValueError, RecursionError):
            message = f"{place}: this is not valid TOML"
            raise UsageError(message) from None
    else:
        read = read_json if path.suffix == ".json" else read_yaml
        content = read(text, str(path)).content
    if not isinstance(content, dict) or not all(isinstance(prior, str) for prior in content.values()):
        message = f"{place}: write a name and a prior on each line, as  flat: Beta(1, 1)"
        raise UsageError(message)
    if not 2 <= len(content) <= _MOST_PRIORS or not all(content):
        message = f"{place}: name 2 to {_MOST_PRIORS} priors, as  flat: Beta(1, 1)"
        raise UsageError(message)
    return {str(name): str(prior) for name, prior in content.items()}


OverwriteOption = Annotated[
    bool, typer.Option("--overwrite", help="Replace files that an earlier command of suffice wrote.")
]

_NAME_ANOTHER = "and is not replaced: name another, or add --overwrite"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
_OUR_COLUMNS = (
    {"estimate", "noise_sd"},
    {"draw", "parameter", "value"},
    {"parameter", "mean", "sd", "lower", "upper"},
    {"predictive_lower", "predictive_upper"},
    {"predicted_class", "class_probability"},
)
"""Of tables, draws, posteriors, predictions and classes."""
_HEAD_BYTES = 64 * 1024


def check_file(option: str, path: Path | None, *, overwrite: bool | None) -> None:
    """Refuse a file that may not be written, before any work is done.

    Parameters
    ----------
    option : str
        As the caller wrote it, ``--out``.
    path : Path or None
        None where the option is not given.
    overwrite : bool or None
        Whether a file that a command wrote earlier may be replaced; None where this command never does.

    Raises
    ------
    UsageError
        Where it is no local path, lies inside a release store, exists without `overwrite`, or exists and is
        no file that we wrote.
    """
    if path is None:
        return
    check_local(option, path)
    from suffice.storage.publications.publication_store import holds_store  # pydantic is slow to import
    from suffice.storage.releases.location import MANIFEST

    try:
        real = Path(os.path.realpath(path))
        is_inside = (real.parent / MANIFEST).exists() or any(map(holds_store, (real, *real.parents)))
        exists = os.path.lexists(path)
        is_file = path.is_file()
    except (OSError, ValueError):
        message = f"{option} {path}: the file cannot be written"
        raise UsageError(message) from None
    if is_inside:
        message = f"{option} {path}: this lies inside a store or a release: name another place"
        raise UsageError(message)
    if not exists:
        return
    if not overwrite:
        way_out = "and is never overwritten: name another" if overwrite is None else _NAME_ANOTHER
        message = f"{option} {path}: the file exists, {way_out}"
        raise UsageError(message)
    if not is_file or path.is_symlink() or not _is_ours(path):
        message = (
            f"{option} {path}: suffice did not write what stands here, and never replaces it: name another"
        )
        raise UsageError(message)


def check_local(option: str, path: Path) -> None:
    """Refuse an address: files are written on this machine.

    Raises
    ------
    UsageError
    """
    if _SCHEME.match(str(path)):
        message = (
            f"{option} {str(path).replace(':/', '://', 1)}: files are written on this machine: name a path; "
            "`suffice publish --to STORE` publishes posteriors into a bucket"
        )
        raise UsageError(message)


@contextlib.contextmanager
def new_file(option: str, path: Path, *, overwrite: bool) -> Iterator[Path]:
    """Give a hidden path beside `path` to write to, and put what was written in its place at the end.

    Nothing half written ever stands at `path`, and nothing that came there meanwhile is replaced.

    Raises
    ------
    UsageError
        As :func:`check_file`, and where the file cannot be written.
    """
    check_file(option, path, overwrite=overwrite)
    hidden = path.with_name(f".{secrets.token_hex(8)}{path.suffix}")
    try:
        yield hidden
        _put(hidden, path, overwrite=overwrite)
    except FileExistsError:
        message = f"{option} {path}: the file exists, {_NAME_ANOTHER}"
        raise UsageError(message) from None
    except OSError:
        message = f"{option} {path}: the file cannot be written"
        raise UsageError(message) from None
    except UsageError as error:  # what writes a format knows only the hidden path
        if hidden.name in str(error):
            message = f"{option} {path}: the file cannot be written"
            raise UsageError(message) from None
        raise
    finally:
        with contextlib.suppress(OSError):
            hidden.unlink(missing_ok=True)


def _put(hidden: Path, path: Path, *, overwrite: bool) -> None:
    if overwrite:
        hidden.replace(path)
        return
    try:
        path.hardlink_to(hidden)  # unlike a rename, it never replaces what stands there
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno not in {errno.EPERM, errno.ENOTSUP, errno.ENOSYS} or os.path.lexists(path):
            raise
        hidden.rename(path)  # a file system without links


def _is_ours(path: Path) -> bool:
    """Whether a file says that we wrote it: by its mark, or by the columns of its header."""
    says: dict[str, Callable[[Path], bool]] = {
        ".csv": _csv_is_ours,
        ".json": _metadata_is_ours,
        ".parquet": _parquet_is_ours,
        ".nc": _netcdf_is_ours,
        ".html": _head_has_mark,
        ".png": _head_has_mark,
        ".svg": _head_has_mark,
    }
    is_ours = says.get(path.suffix)
    if is_ours is None:
        return False
    try:
        return is_ours(path)
    except (OSError, ValueError):
        return False


def _csv_is_ours(path: Path) -> bool:
    import csv

    with path.open(encoding="utf-8", newline="") as file:
        line = file.readline(_HEAD_BYTES)
    try:
        header = set(next(csv.reader([line]), ()))
    except csv.Error:
        return False
    return any(header >= ours for ours in _OUR_COLUMNS)


def _metadata_is_ours(path: Path) -> bool:
    return path.name.endswith(f".csv{METADATA_SUFFIX}") and _head_has_mark(path)


def _parquet_is_ours(path: Path) -> bool:
    import pyarrow as pa  # only where a Parquet file is to be replaced
    import pyarrow.parquet as pq

    try:
        return MARK.encode() in (pq.read_schema(path).metadata or {})
    except pa.ArrowException:
        return False


def _netcdf_is_ours(path: Path) -> bool:
    import h5py  # type: ignore[import-untyped]  # of the extra that writes such files

    with h5py.File(path) as file:
        return "posterior" in file and file["posterior"].attrs.get("inference_library") == MARK


def _head_has_mark(path: Path) -> bool:
    with path.open("rb") as file:
        return f"written by {MARK}".encode() in file.read(_HEAD_BYTES)


def write_new(out: Path, text: str) -> None:
    """Write what ``--out`` names, and nothing over what stands there.

    Raises
    ------
    UsageError
    """
    try:
        with out.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        message = f"--out {out}: the file exists, and is not overwritten"
        raise UsageError(message) from None
    except OSError:
        message = f"--out {out}: the file cannot be written"
        raise UsageError(message) from None
