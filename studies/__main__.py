"""Run studies of the papers' results: pictures and tables. No name lists them, `all` runs every one."""

from __future__ import annotations

import argparse
import difflib
import signal
import sys
import time
import traceback
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import TYPE_CHECKING

from studies.catalogue import STUDIES, Study, module_of
from studies.result import Size
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
    if len(studies) == 1:
        return _tell(studies[0], lambda: run_study(studies[0], out, seed, size))
    # Processes end at once where the user stops all, instead of with the studies that they are at.
    pool = ProcessPoolExecutor(processes, initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_DFL))
    status = 0
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


def run_study(study: Study, out: Path, seed: int, size: Size) -> str:
    """Run one study, and say what it found and wrote."""
    start = time.perf_counter()
    result = module_of(study).run(out, seed, size)
    lines = [f"{study.name}: {study.paper}, {study.result}; {time.perf_counter() - start:.1f} s"]
    for found in result.rows:
        quantity, paper, ours, error, verdict, _ = found.cells()
        beside = f"; paper {paper}" if paper else ""
        lines.append(f"  {quantity}: {ours} ({error}){beside}: {verdict}")
    return "\n".join([*lines, *(f"  wrote {path}" for path in result.files)])


if __name__ == "__main__":
    sys.exit(main())
