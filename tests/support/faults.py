"""Runs that are killed or stopped at a named point, and runs of naive implementations (mutants).

All of it is installed in the process of the run itself, by replacing functions there; the product has no
hooks. What a fault left behind is judged by :mod:`support.judging`.
"""

from __future__ import annotations

import importlib
import os
import signal
import threading
import time
from contextlib import nullcontext, suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suffice.pipeline.terms.declaration.documents import document

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from sqlalchemy import Connection, Engine

    from suffice.storage.ledger.charge import Charge

    Where = tuple[str, str, str]
    Fuse = tuple[str, float]

STATISTICS = {
    "cancelled": {"family": "bernoulli", "column": "cancelled"},
    "stops": {
        "family": "poisson",
        "column": "stops",
        "upper": 5,
        "sample": {"draws": 2, "within": ["0.2", "8"], "grid": 33, "prior": "Gamma(2, 1)"},
    },
}
"""Two data files, of noisy statistics and of a sample: what happens between files happens between these."""

POINTS: dict[str, Where] = {
    "before reserve": ("ledger", "reserve", "before"),
    "inside reserve": ("entry", "reserved", "after"),
    "after reserve": ("ledger", "reserve", "after"),
    "between draws": ("draw", "", "after"),
    "after the noise": ("noise", "", "after"),
    "before drawing": ("ledger", "enter_drawing", "before"),
    "inside drawing": ("entry", "drawing", "after"),
    "after drawing": ("ledger", "enter_drawing", "after"),
    "between samples": ("sample", "", "after"),
    "after the draw": ("mechanism", "", "after"),
    "inside the files": ("spooled", "stops.parquet", "before"),
    "before the marker": ("spooled", "complete.json", "before"),
    "after the files": ("marker", "", "after"),
    "inside staged": ("entry", "staged", "after"),
    "after staged": ("ledger", "stage", "after"),
    "inside file 1": ("link", "cancelled.parquet", "before"),
    "after file 1": ("file", "cancelled.parquet", "after"),
    "inside file 2": ("link", "stops.parquet", "before"),
    "after file 2": ("file", "stops.parquet", "after"),
    "inside manifest": ("link", "manifest.json", "before"),
    "after manifest": ("manifest", "", "after"),
    "inside published": ("entry", "published", "after"),
    "after published": ("ledger", "publish", "after"),
}
"""Every step of a release, in order: before and after it, and inside where it has an inside (a transaction
before its commit, a file written and not yet linked to its name)."""

ON_A_CONE: dict[str, Where] = {"between draws on a cone": ("cone", "", "after")}
"""The step of a release that another sampler has, where its noise is on a cone."""

FREE = tuple(POINTS)[: tuple(POINTS).index("after reserve")]
"""Where nothing is charged yet."""
BEFORE_THE_DRAW = ("after reserve", "between draws", "after the noise")
"""Where a charge stands without a marker: its noise, if there is any, has met no total."""
PUBLISHED = tuple(POINTS)[tuple(POINTS).index("after the files") :]
"""Where the release is fixed, in the spool or by the ledger too, and is published."""
IN_THE_DRAW = tuple(point for point in POINTS if point not in {*FREE, *BEFORE_THE_DRAW, *PUBLISHED})
"""Where noise may have met totals: returned where the spool proves that nobody saw it, else spent."""
RETURNED = (*BEFORE_THE_DRAW, *IN_THE_DRAW, *ON_A_CONE)
"""Where a charge is abandoned on the host of its run, and its epsilon comes back."""


STARTS = ("run", "noise", "drawing", "sums", "staged")
"""From where a fuse may burn: the run's begin, that of its noise, of `drawing`, of the sums, and `staged`."""

RECOVERY_POINTS: dict[str, Where] = {
    "after taking over": ("ledger", "take_over", "after"),
    "inside tombstone or manifest": ("link", "manifest.json", "before"),
    "after tombstone or manifest": ("manifest", "", "after"),
    "inside abandoned": ("entry", "abandoned", "after"),
    "after abandoned": ("ledger", "abandon", "after"),
    "after the files of the draw": ("emptied", "", "after"),
    "after returned": ("ledger", "return_draw", "after"),
    "between removals": ("removal", "", "after"),
    "inside published": ("entry", "published", "after"),
    "after published": ("ledger", "publish", "after"),
}
"""Every step of a recovery."""


def warm_up() -> None:
    """Import what a release imports, and have its kernels and statements compiled; start no thread."""
    for module in (
        "opendp._data",
        "scipy.stats",
        "sqlalchemy.dialects.sqlite",
        "suffice.pipeline.rows.mechanism.mechanism",
        "suffice.pipeline.rows.reduce.tree",
        "suffice.pipeline.rows.reduce.survey",
        "suffice.pipeline.rows.reduce.tree",
        "suffice.pipeline.rows.sources.schema_check",
        "suffice.releasing.release",
        "suffice.storage.ledger.sql.postgres",
        "suffice.storage.ledger.sql.sqlite",
        "support.small_disk",
    ):
        importlib.import_module(module)
    from suffice.pipeline.rows.chunk.partition import chunk_job, sum_batches
    from suffice.pipeline.spec.spec import load_spec
    from support.making import flights, mapping

    spec = load_spec(mapping("data", statistics=STATISTICS))
    sum_batches(flights(10).to_batches(), chunk_job(spec))
    _pay_once()


def _pay_once() -> None:
    """Charge, draw, stage and publish in a ledger of SQLite, so that its statements are compiled."""
    import tempfile
    from contextlib import closing

    from sqlalchemy.sql.elements import ClauseElement

    from support.compiled_once import compiling_once
    from support.paid import open_books, pay

    replace_function(ClauseElement, "_compile_w_cache", compiling_once(ClauseElement._compile_w_cache))
    with tempfile.TemporaryDirectory() as directory:
        books = open_books(Path(directory))
        with closing(books.ledger):
            pay(books, "first")
            books.ledger.account("passengers")


def perform(
    *,
    spec: dict[str, Any],
    store: str,
    ledger: str,
    spool: str,
    draws: str,
    window: str = "all",
    amendment: int = 0,
    new_attempt: bool = False,
    point: str = "",
    number: int = 0,
    expired: bool = False,
    mutant: str = "",
    fill: str = "",
    fuse: Fuse | None = None,
    host: str = "",
    witness: str | None = None,
    timed: bool = False,
) -> dict[str, Any]:
    """Make a release in this process, which is spent afterwards; return how it ended.

    Parameters
    ----------
    spec, store, ledger, spool, window, amendment, new_attempt
        Of the release.
    draws : str
        A file that gets the release's name once for every time that noise meets totals.
    point, number
        Send this process the signal of that number at a point of `POINTS`.
    expired : bool
        Let the lease of the charge have passed whenever anybody looks.
    fill : str
        A small disk that is full as soon as the charge is in ``drawing``.
    mutant : str
        The name of a naive implementation to run in place of ours.
    fuse : tuple, optional
        Kill this process some seconds after it came to a step of `STARTS`.
    host : str
        Have this process be one of another machine.
    witness : str, optional
        Of the ledger.
    timed : bool
        Report the seconds from each step of `STARTS` to the end.
    """
    from suffice.errors import SufficeError
    from suffice.pipeline.rows.mechanism import mechanism
    from suffice.pipeline.spec.spec import load_spec
    from suffice.releasing import release as releasing
    from suffice.storage.ledger.opening import open_ledger
    from suffice.storage.ledger.sql.sql_ledger import SqlLedger
    from support.small_disk import SmallDisk

    os.environ["SUFFICE_SPOOL"] = spool
    if expired:
        replace_function(releasing, "open_ledger", partial(open_ledger, lease=timedelta(0)))
    if mutant:
        MUTANTS[mutant]()
    if fill:
        disk = SmallDisk(path=Path(fill), real=True)
        interpose(SqlLedger, "enter_drawing", "after", lambda *_, **__: disk.fill())

    def note_draw(*_: object, **__: object) -> None:
        with Path(draws).open("a", encoding="utf-8") as file:
            file.write(f"{spec['name']}\n")

    interpose(mechanism, "privatize", "before", note_draw)
    if point:
        install({**POINTS, **ON_A_CONE}[point], number)
    if fuse:
        light(*fuse)
    if host:
        move_to(host)
    times = note_times() if timed else {}
    try:
        outcome = releasing.carry_out(
            load_spec(spec),
            store=store,
            ledger=ledger,
            window=window,
            amendment=amendment,
            new_attempt=new_attempt,
            publish_timeout=0,
            witness=witness,
        )
    except SufficeError as error:
        return {"status": type(error).__name__, "message": str(error)}
    seconds = {start: time.monotonic() - begun for start, begun in times.items()}
    return {"status": outcome.status, "release_id": outcome.release.release_id, "seconds": seconds}


def perform_recovery(
    *, ledger: str, spool: str, point: str = "", fuse: Fuse | None = None, host: str = "", lease: float = 0
) -> dict[str, Any]:
    """Recover in this process; it is killed if it comes to a point of `RECOVERY_POINTS`, or by a fuse."""
    from suffice.storage.ledger.opening import open_ledger
    from suffice.storage.operations.recovery import recover
    from suffice.storage.releases.release_store import open_store
    from suffice.storage.releases.spool import find_spool

    if point:
        install(RECOVERY_POINTS[point], signal.SIGKILL)
    if fuse:
        light(*fuse)
    if host:
        move_to(host)
    with open_ledger(ledger, lease=timedelta(seconds=lease)) as opened:
        recovered: dict[str, Any] = document(recover(opened, open_store, spool=find_spool(Path(spool))))
        return recovered


def install(where: Where, number: int) -> None:
    """Send this process a signal when it first comes to a step."""
    from suffice.pipeline.rows.mechanism import mechanism, noise, sampling
    from suffice.pipeline.rows.mechanism.cone.sampler import ConeSampler
    from suffice.pipeline.rows.mechanism.held_noise import HeldNoise
    from suffice.storage.ledger.sql import rows as entries
    from suffice.storage.ledger.sql.sql_ledger import SqlLedger
    from suffice.storage.objects import local_files
    from suffice.storage.objects.local_files import LocalFiles
    from suffice.storage.releases.release_store import ReleaseStore
    from suffice.storage.releases.spool_entry import SpoolEntry

    signals = [number]

    def action() -> None:
        if signals:
            os.kill(os.getpid(), signals.pop())

    def always(*_: object, **__: object) -> bool:
        return True

    what, which, moment = where
    steps: dict[str, tuple[Any, str, Callable[..., bool]]] = {
        "ledger": (SqlLedger, which, always),
        # After the rows are changed, before the transaction is committed.
        "entry": (entries, "next_entry", lambda _, kind, *__: kind == which),
        "draw": (noise.Sampler, "draw_into", always),
        "cone": (ConeSampler, "overwrite", always),
        "noise": (HeldNoise, "wait", always),
        "sample": (sampling.Selector, "draw_into", always),
        "mechanism": (mechanism, "privatize", always),
        "spooled": (SpoolEntry, "writing", lambda _, name: name == which),
        "marker": (SpoolEntry, "finish", always),
        "emptied": (SpoolEntry, "empty", always),
        "file": (LocalFiles, "put_new", lambda _, key, __: key.endswith(f"/{which}")),
        # The file is complete and synced under a hidden name.
        "link": (local_files, "_link", lambda _, path: path.name == which),
        "manifest": (ReleaseStore, "put_manifest", always),
        "removal": (local_files, "_remove", lambda path: path.suffix == ".parquet"),
    }
    owner, name, condition = steps[what]
    interpose(owner, name, moment, lambda *args, **kwargs: action() if condition(*args, **kwargs) else None)


def light(start: str, seconds: float) -> None:
    """Kill this process some seconds after it first comes to a step of `STARTS`, wherever it is then."""
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGKILL))
    timer.daemon = True
    begin(start, timer.start)


def begin(start: str, action: Callable[[], object]) -> None:
    """Do something when this process first comes to a step of `STARTS`."""
    from suffice.pipeline.rows.mechanism import mechanism
    from suffice.pipeline.rows.mechanism.held_noise import HeldNoise
    from suffice.storage.ledger.sql.sql_ledger import SqlLedger

    actions = [action]

    def act(*_: object, **__: object) -> None:
        while actions:
            actions.pop()()

    steps: dict[str, tuple[Any, str]] = {
        "noise": (HeldNoise, "__init__"),
        "drawing": (SqlLedger, "enter_drawing"),
        "sums": (mechanism, "privatize"),
        "staged": (SqlLedger, "stage"),
    }
    if start == "run":
        act()
    else:
        interpose(*steps[start], "before", act)


def note_times() -> dict[str, float]:
    """Return when this process came to each step of `STARTS`, as soon as it does."""
    times: dict[str, float] = {}

    def note(start: str) -> None:
        times[start] = time.monotonic()

    for start in STARTS:
        begin(start, partial(note, start))
    return times


def move_to(host: str) -> None:
    """Have this process be one of a machine of that name, on which no process of another one is known."""
    from suffice.storage.ledger import charge

    replace_function(charge, "_place", lambda: {"machine": host, "boot": host, "namespace": host})


def interpose(owner: Any, name: str, moment: str, action: Callable[..., None]) -> None:
    """Have something done before or after every call of a function, with its arguments."""
    original = getattr(owner, name)

    @wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        if moment == "before":
            action(*args, **kwargs)
        result = original(*args, **kwargs)
        if moment == "after":
            action(*args, **kwargs)
        return result

    replace_function(owner, name, call)


def replace_function(owner: Any, name: str, function: object) -> None:
    """Replace a function of a module, or a method of a class."""
    setattr(owner, name, function)


def charge_after_publishing() -> None:
    """Make the whole run one transaction of the ledger, committed once the release stands.

    The run reads in that transaction too: else it would miss its own charge, and its own marker would be
    refused, long before the rule that it breaks is asked.
    """
    from suffice.storage.ledger.sql import sql_ledger

    opened: list[Connection] = []
    read = vars(sql_ledger)["snapshot"]

    def change(engine: Engine, work: Callable[[Connection], Any], **_: object) -> Any:
        if not opened:
            opened.append(engine.connect())
            opened[0].begin()
        return work(opened[0])

    def snapshot(engine: Engine) -> AbstractContextManager[Connection]:
        transaction: AbstractContextManager[Connection] = read(engine)
        return nullcontext(opened[0]) if opened else transaction

    replace_function(sql_ledger, "change", change)
    replace_function(sql_ledger, "snapshot", snapshot)
    interpose(sql_ledger.SqlLedger, "publish", "after", lambda *_: opened[0].commit())


def redraw_on_rerun() -> None:
    """Go on with whatever a dead run left, draw again, and overwrite its files."""
    from suffice.errors import LedgerCorruptError
    from suffice.releasing import run as release_run
    from suffice.storage.ledger.charge import ChargeState
    from suffice.storage.ledger.rerun import Decision, decide_rerun
    from suffice.storage.ledger.sql import sql_ledger
    from suffice.storage.ledger.sql.moves import claim as take
    from suffice.storage.objects import local_files

    drawn: list[Charge] = []
    enter, link = sql_ledger.SqlLedger.enter_drawing, vars(local_files)["_link"]
    put = vars(release_run)["put_marker"]

    def decide(charge: Charge | None, *args: Any, **kwargs: Any) -> Decision:
        if charge is not None and charge.state is ChargeState.DRAWING:
            return Decision.TAKE_OVER
        return decide_rerun(charge, *args, **kwargs)

    def claim(*args: Any) -> Charge:
        charge = take(*args)
        if charge.state is ChargeState.DRAWING:
            drawn.append(charge)
            charge = replace(charge, state=ChargeState.RESERVED)
        return charge

    def enter_drawing(ledger: sql_ledger.SqlLedger, charge: Charge, **options: Any) -> Charge:
        return drawn[0] if drawn else enter(ledger, charge, **options)

    def put_marker(*args: Any) -> None:
        with suppress(LedgerCorruptError):  # a marker of the run that died
            if not drawn:
                put(*args)

    def overwrite(hidden: Path, path: Path) -> None:
        if path.suffix == ".parquet":
            hidden.replace(path)
        else:
            link(hidden, path)

    replace_function(release_run, "decide_rerun", decide)
    replace_function(release_run, "standing_marker", lambda *_: None)
    replace_function(sql_ledger, "decide_rerun", decide)
    replace_function(sql_ledger, "claim", claim)
    replace_function(release_run, "put_marker", put_marker)
    replace_function(sql_ledger.SqlLedger, "enter_drawing", enter_drawing)
    replace_function(local_files, "_link", overwrite)


def manifest_before_files() -> None:
    """Write the data files after the manifest that names them."""
    from suffice.storage.objects.local_files import LocalFiles
    from suffice.storage.releases.location import MANIFEST

    put = LocalFiles.put_new
    waiting: list[tuple[Any, ...]] = []

    def put_new(files: LocalFiles, key: str, data: bytes) -> None:
        if key.endswith(".parquet"):
            waiting.append((files, key, data))
            return
        put(files, key, data)
        if key.endswith(MANIFEST):
            for late in waiting:
                time.sleep(1)  # a reader on a busy machine looks at least once meanwhile
                put(*late)

    replace_function(LocalFiles, "put_new", put_new)


def no_fence_in_the_ledger() -> None:
    """Let a run go on without asking the ledger whether it still holds its charge."""
    from suffice.storage.ledger.charge import ChargeState
    from suffice.storage.ledger.sql.sql_ledger import SqlLedger

    def stage(_: SqlLedger, charge: Charge, manifest: bytes) -> Charge:
        return replace(charge, state=ChargeState.STAGED, manifest=manifest)

    def publish(_: SqlLedger, charge: Charge) -> Charge:
        return replace(charge, state=ChargeState.PUBLISHED)

    replace_function(SqlLedger, "stage", stage)
    replace_function(SqlLedger, "publish", publish)


MUTANTS = {
    "charge after publishing": charge_after_publishing,
    "redraw on rerun": redraw_on_rerun,
    "manifest before files": manifest_before_files,
    "no fence in the ledger": no_fence_in_the_ledger,
}
