"""Run studies of the papers' results: pictures and tables. No name lists them, `all` runs every one."""

from __future__ import annotations

import argparse
import difflib
import multiprocessing
import signal
import sys
import traceback
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from studies.catalogue import STUDIES, Study
from studies.result import Size
from studies.running import run_study
from suffice.errors import SufficeError

if TYPE_CHECKING:
    from collections.abc import Callable

OUT = Path("build/studies")
SEED = 1
ALL = "all"
FAILED, STOPPED = 1, 130
"""Exit statuses: a study failed, the user stopped all."""


def main(arguments: list[str] | None = None) -> int:
    """Run what the arguments name; the exit status is 2 where a name or a folder is wrong.

    A study that fails is named, and the others go on.
    """
    parser = _parser()
    chosen = parser.parse_args(arguments)
    if not chosen.names:
        if arguments or (arguments is None and len(sys.argv) > 1):
            parser.error("which studies? name some, or all")
        print("\n".join(f"{study.name:24}{study.paper}, {study.result}" for study in STUDIES))
        return 0
    known = {study.name: study for study in STUDIES}
    if unknown := [name for name in chosen.names if name not in {*known, ALL}]:
        near = difflib.get_close_matches(unknown[0].lower(), [*known, ALL], n=1)
        meant = f" Did you mean {near[0]}?" if near else ""
        print(f"There is no study {unknown[0]!r}.{meant} `python -m studies` lists all.", file=sys.stderr)
        return 2
    wanted = list(known.values()) if ALL in chosen.names else [known[name] for name in chosen.names]
    try:
        chosen.out.mkdir(parents=True, exist_ok=True)
        return _run_all(
            wanted, chosen.out, chosen.seed, Size.FULL if chosen.full else Size(chosen.size), chosen.processes
        )
    except BrokenPipeError:  # nobody reads on
        return FAILED
    except OSError:
        print(f"--out {chosen.out}: nothing can be written there.", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"Stopped. What was written stays in {chosen.out}.", file=sys.stderr)
        return STOPPED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m studies", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"studies, or {ALL}; none: list them")
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--full", action="store_true", help="at least the papers' own number of repeats")
    sizes.add_argument(
        "--size",
        choices=[size.value for size in Size],
        default=Size.USUAL.value,
        help="how much is simulated (%(default)s)",
    )
    parser.add_argument("--out", type=Path, default=OUT, help="the folder for PNG and CSV (%(default)s)")
    parser.add_argument("--seed", type=_at_least(0), default=SEED, help="of what is simulated (%(default)s)")
    parser.add_argument("--processes", type=_at_least(1), default=2, help="studies at a time (%(default)s)")
    return parser


def _at_least(least: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            message = f"{text!r}: a whole number of at least {least} is needed"
            raise argparse.ArgumentTypeError(message)
        return int(text)

    return number


def _run_all(studies: list[Study], out: Path, seed: int, size: Size, processes: int) -> int:
    status = 0
    if processes == 1 or len(studies) == 1:
        for study in studies:
            status = _tell(study, partial(run_study, study, out, seed, size)) or status
        return status
    # Processes end at once where the user stops all, instead of with the studies that they are at. They are
    # not forked: whoever calls this may have threads.
    pool = ProcessPoolExecutor(
        processes,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=signal.signal,
        initargs=(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        running = {pool.submit(run_study, study, out, seed, size): study for study in studies}
        for done in as_completed(running):
            status = _tell(running[done], done.result) or status
    finally:
        pool.shutdown(cancel_futures=True)
    return status


def _tell(study: Study, result: Callable[[], str]) -> int:
    """Print what a study says, or why it failed, and return the exit status."""
    try:
        print(result(), flush=True)
    except OSError:
        raise
    except SufficeError as error:
        print(f"{study.name}: {error}", file=sys.stderr)
        return error.exit_status
    except BrokenExecutor:
        print(f"{study.name}: its process was ended, as where memory runs out.", file=sys.stderr)
        return FAILED
    except Exception as error:  # noqa: BLE001 - of a study, which must not end the others
        traceback.print_exception(error)
        print(f"{study.name}: failed, as told above.", file=sys.stderr)
        return FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main())
