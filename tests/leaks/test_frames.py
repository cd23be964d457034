"""Nothing exact, and no noise, stands in what an error shows, whichever stage of a release failed."""

from __future__ import annotations

import code
import contextlib
import os
import signal
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import suffice
from suffice.errors import LedgerError, StageFailedError, SufficeError
from suffice.pipeline.rows import sources
from suffice.pipeline.rows.mechanism.cone import sampler as cone_sampler
from suffice.pipeline.rows.mechanism.cone.bits import BufferedBits
from suffice.pipeline.rows.mechanism.cone.sampler import ConeSampler
from suffice.pipeline.rows.mechanism.noise import Sampler
from suffice.pipeline.rows.mechanism.sampling import Selector
from suffice.pipeline.rows.reduce import tree
from suffice.releasing import run as release_run
from suffice.storage.ledger.sql.sql_ledger import SqlLedger
from suffice.storage.releases.release_store import ReleaseStore
from support.hostile import bernoulli, normal, poisson
from support.leaking import LEAST, Sought, leaks, sought_in
from support.making import Workspace, make_workspace, mapping
from support.samples import drawn, drawn_quantile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from suffice.pipeline.cluster.connection import Cluster

    Inject = Callable[[pytest.MonkeyPatch, Workspace], None]

ROWS = (140_009, 150_023, 160_033)
"""Of each file: numbers that nothing else has."""
STATISTICS = {
    "delay": normal("delay", "-60", "180", lattice_bits="24"),
    "flag": bernoulli("flag"),
    "stops": poisson("stops", "5"),
    "drawn": drawn("flag", draws="3"),
    "half": drawn_quantile("delay", lower="-60", upper="180", atoms=["0"], sample={"quantile": "0.5"}),
}
ON_A_CONE = {
    "together": {
        "family": "linear_regression",
        "outcome": {"delay": {"lower": "-60", "upper": "180"}},
        "predictors": {"stops": {"lower": "0", "upper": "5"}},
        "noise": "cone",
    }
}
N_NOISY = 3
UNITS = {
    **{name: {**STATISTICS[name], "rows_of": "units"} for name in STATISTICS},
    "delay-within": {**normal("delay", "-60", "180", lattice_bits="16"), "within_unit": "true"},
    "flag-within": {**bernoulli("flag"), "within_unit": "true"},
    "rows": {"family": "rows_per_unit", "upper": "40"},
}
ROWS_OF_A_UNIT, MAX_ROWS = 4, 3


@pytest.fixture(scope="module")
def local() -> Iterator[Cluster]:
    with tree.open_cluster_for_sums("local") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data whose totals, rows, sizes and times are numbers that are found nowhere else."""
    directory = tmp_path_factory.mktemp("rows")
    rng = np.random.default_rng(5)
    for number, n_rows in enumerate(ROWS):
        # All rows of a unit are alike: whichever the key of a run keeps, the exact sums are the same.
        unit = np.arange(n_rows) // ROWS_OF_A_UNIT
        n_units = int(unit[-1]) + 1
        table = pa.table(
            {
                "who": unit + number * max(ROWS),
                "g": rng.choice(["a", "b"], n_units)[unit],
                "flag": (rng.random(n_units) < 0.4)[unit],
                "stops": rng.poisson(2, n_units)[unit],
                "delay": rng.normal(10, 60, n_units)[unit],
            }
        )
        pq.write_table(table, directory / f"{number}.parquet", compression="none")
    return directory


@pytest.fixture
def workspace(tmp_path: Path, made: Path) -> Workspace:
    return workspace_of(tmp_path, made)


def workspace_of(tmp_path: Path, made: Path, **terms: Any) -> Workspace:
    """The data in a place of their own, without groups of rows that another test has changed."""
    place = make_workspace(tmp_path, granted="100", **terms)
    for path in place.data.iterdir():
        path.unlink()
    for path in made.iterdir():
        (place.data / path.name).write_bytes(path.read_bytes())
    return place


def changes(**others: Any) -> dict[str, Any]:
    privacy = {"epsilon": "1", "neighboring": "add_or_remove_one", "unit": "row"}
    return {"statistics": STATISTICS, "groups": {"g": ["a", "b"]}, "privacy": privacy, **others}


def replace(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, error: BaseException) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(owner, name, fail)


def after(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, act: Callable[[], object]) -> None:
    original = getattr(owner, name)

    def then(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        act()
        return result

    monkeypatch.setattr(owner, name, then)


def damage(_: pytest.MonkeyPatch, workspace: Workspace) -> None:
    """Its footer is whole, its pages are not: reading it fails in a task."""
    path = workspace.data / "1.parquet"
    content = path.read_bytes()
    path.write_bytes(content[:100] + b"\xff" * (len(content) // 2) + content[100 + len(content) // 2 :])


def damage_end(_: pytest.MonkeyPatch, workspace: Workspace) -> None:
    """Its footer is none: an error of Arrow's is the context of ours."""
    path = workspace.data / "1.parquet"
    path.write_bytes(path.read_bytes()[:-9])


class Panic(BaseException):
    """What extensions in Rust raise: no `Exception`."""


def panic_in_the_draw(monkeypatch: pytest.MonkeyPatch, _: Workspace) -> None:
    original = Sampler.draw_into

    def failing(sampler: Sampler, out: Any) -> None:
        original(sampler, out)
        raise Panic(int(out[0]))

    monkeypatch.setattr(Sampler, "draw_into", failing)


def lose_the_ledger(monkeypatch: pytest.MonkeyPatch, _: Workspace) -> None:
    """Before the draw, so that not even the charge can be given back."""
    for name in ("mark", "abandon"):
        replace(monkeypatch, SqlLedger, name, RuntimeError("gone"))


def change_file(monkeypatch: pytest.MonkeyPatch, workspace: Workspace) -> None:
    after(monkeypatch, tree, "exact_sums", lambda: os.utime(workspace.data / "1.parquet", (1, 1)))


def raise_interrupt() -> None:
    raise KeyboardInterrupt


def fail_to_encode(monkeypatch: pytest.MonkeyPatch, _: Workspace) -> None:
    def fail() -> None:
        replace(monkeypatch, pq.ParquetWriter, "write_table", ValueError("4242424242"))

    after(monkeypatch, SqlLedger, "enter_drawing", fail)


def fail_to_draw(monkeypatch: pytest.MonkeyPatch, _: Workspace) -> None:
    original, drawn = Sampler.draw_into, []

    def failing(sampler: Sampler, out: Any) -> None:
        original(sampler, out)
        drawn.append(len(out))
        if len(drawn) == N_NOISY:
            raise MemoryError

    monkeypatch.setattr(Sampler, "draw_into", failing)


def fail_to_select(monkeypatch: pytest.MonkeyPatch, _: Workspace) -> None:
    original = Selector.draw_into

    def failing(selector: Selector, scores: Any, out: Any) -> None:
        original(selector, scores, out)
        raise Panic(scores)

    monkeypatch.setattr(Selector, "draw_into", failing)


def fail_to_draw_on_a_cone(monkeypatch: pytest.MonkeyPatch, _: Workspace) -> None:
    original = ConeSampler.overwrite

    def failing(sampler: ConeSampler, out: Any, *, is_long: bool) -> None:
        original(sampler, out, is_long=is_long)
        raise Panic(out)

    monkeypatch.setattr(ConeSampler, "overwrite", failing)


STAGES: dict[str, Inject] = {
    "pin": damage_end,
    "schema": lambda patch, _: replace(patch, sources, "splits", SufficeError("columns")),
    "no stage": lambda patch, _: replace(patch, sources, "splits", RuntimeError(f"{ROWS[0]} rows")),
    "reading in a task": damage,
    "check of the pin": change_file,
    "interrupted reading": lambda patch, _: after(patch, tree, "exact_sums", raise_interrupt),
    "preflight": lambda patch, _: replace(patch, SqlLedger, "mark", LedgerError("no")),
    "a lost ledger": lose_the_ledger,
    "enter drawing": lambda patch, _: replace(patch, SqlLedger, "enter_drawing", LedgerError("no")),
    "noise": fail_to_draw,
    "a panic in the draw": panic_in_the_draw,
    "a sample": fail_to_select,
    "encoding": fail_to_encode,
    "staging": lambda patch, _: replace(patch, SqlLedger, "stage", RuntimeError("no")),
    "publishing": lambda patch, _: replace(patch, ReleaseStore, "put_manifest", RuntimeError("no")),
    "interrupted publishing": lambda patch, _: after(
        patch, SqlLedger, "stage", lambda: os.kill(os.getpid(), signal.SIGINT)
    ),
}


UNREAD = {"pin", "schema", "no stage", "reading in a task"}
"""Stages after which no sums are left to be overwritten in this process, or not by us."""


UNDRAWN = {"pin", "schema", "no stage"}
BESIDE_THE_DRAW = {"reading in a task", "check of the pin", "interrupted reading"}
"""Noise is drawn beside the reading: how much of it there is when the reading fails is a matter of time."""


def failing(
    place: Workspace, stage: str, monkeypatch: pytest.MonkeyPatch, **others: Any
) -> tuple[BaseException, Sought]:
    """Fail at a stage; return the error as the Python API raises it, and what it must not show."""
    spec = place.spec(**changes(**others))
    sought = sought_in(spec)
    assert len(sought.numbers) > 20
    if stage in {"pin", "reading in a task"}:
        sought.numbers = {n: what for n, what in sought.numbers.items() if "size or time" not in what}
    sought.add_noise(monkeypatch)
    STAGES[stage](monkeypatch, place)
    with pytest.raises((SufficeError, KeyboardInterrupt)) as caught:
        suffice.release(spec, store=place.store, ledger=place.ledger)
    return caught.value, sought


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["threads", "local"])
@pytest.mark.parametrize("stage", STAGES)
def test_no_error_shows_anything_exact(
    workspace: Workspace, local: Cluster, monkeypatch: pytest.MonkeyPatch, stage: str, kind: str
) -> None:
    if kind == "local":
        monkeypatch.setattr(tree, "open_cluster_for_sums", lambda *_: contextlib.nullcontext(local))
    error, sought = failing(workspace, stage, monkeypatch)
    drew = "noise" in sought.numbers.values()
    assert drew == (stage not in UNDRAWN) or stage in BESIDE_THE_DRAW, "the fault came where it should"
    assert leaks(error, sought) == []
    assert error.__context__ is None
    assert error.__cause__ is None


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["reading in a task", "check of the pin", "noise", "staging"])
@pytest.mark.parametrize("contained", [True, False])
def test_no_error_shows_anything_exact_of_whole_units(
    tmp_path: Path, made: Path, monkeypatch: pytest.MonkeyPatch, stage: str, *, contained: bool
) -> None:
    """And the mutant, whose errors keep the frames that they passed."""
    place = workspace_of(tmp_path, made, unit="column:who")
    privacy = {
        "epsilon": "1",
        "neighboring": "add_or_remove_one",
        "unit": {"column": "who", "max_rows": str(MAX_ROWS)},
    }
    if not contained:
        monkeypatch.setattr(release_run, "contained", lambda work: work())
    error, sought = failing(place, stage, monkeypatch, statistics=UNITS, privacy=privacy)
    assert "an exact total" in sought.numbers.values()
    assert (leaks(error, sought) == []) == contained


@pytest.mark.slow
@pytest.mark.parametrize("act", [fail_to_draw_on_a_cone, fail_to_encode])
def test_no_error_shows_anything_of_noise_on_a_cone(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, act: Inject
) -> None:
    spec = workspace.spec(**changes(statistics=ON_A_CONE))
    sought = sought_in(spec)
    sought.add_noise(monkeypatch)
    act(monkeypatch, workspace)
    with pytest.raises(SufficeError) as caught:
        suffice.release(spec, store=workspace.store, ledger=workspace.ledger)
    assert {"an exact total", "noise"} <= set(sought.numbers.values())
    assert leaks(caught.value, sought) == []
    assert caught.value.__context__ is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "stage", ["schema", "no stage", "interrupted reading", "noise", "staging", "publishing"]
)
def test_no_error_shows_anything_of_rows_in_memory(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    frame = pq.read_table(workspace.data).to_pandas()
    sought = sought_in(workspace.spec(**changes()))
    sought.numbers |= {len(frame): "a number of rows"}
    sought.add_noise(monkeypatch)
    STAGES[stage](monkeypatch, workspace)
    content = {key: value for key, value in mapping("data", **changes()).items() if key != "source"}
    with pytest.raises((SufficeError, KeyboardInterrupt)) as caught:
        suffice.release(content, store=workspace.store, ledger=workspace.ledger, data=frame)
    assert leaks(caught.value, sought) == []
    assert caught.value.__context__ is None


@pytest.mark.parametrize("stage", ["schema", "check of the pin", "noise", "staging"])
def test_without_the_containment_every_stage_shows_something(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    """The mutant: errors keep the frames that they passed."""
    monkeypatch.setattr(release_run, "contained", lambda work: work())
    error, sought = failing(workspace, stage, monkeypatch)
    leaked = leaks(error, sought)
    assert any("_fresh.pin" in each for each in leaked)
    assert any("a number of rows" in each for each in leaked)


@pytest.mark.parametrize("stage", ["published", *(stage for stage in STAGES if stage not in UNREAD)])
def test_totals_are_overwritten_whatever_the_end(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    """The tables that tasks left, the totals of the last addition, and the noise, in the very arrays."""
    arrays: list[Any] = []
    combine: Callable[[Any], Any] = vars(tree)["combine"]

    def noted(parts: Any) -> Any:
        total = combine(parts)
        for table in [table for sums in (*parts, total) for table in sums.values()]:
            arrays.extend(array for array in (table.low, table.high) if array is not None)
        return total

    monkeypatch.setattr(tree, "combine", noted)
    draw_into = Sampler.draw_into

    def drawing(sampler: Sampler, out: Any) -> None:
        draw_into(sampler, out)
        arrays.append(out)

    def selecting(selector: Selector, scores: Any, out: Any) -> None:
        select_into(selector, scores, out)
        arrays.extend((scores, out))

    select_into = Selector.draw_into
    monkeypatch.setattr(Sampler, "draw_into", drawing)
    monkeypatch.setattr(Selector, "draw_into", selecting)
    if stage == "published":
        workspace.run(**changes())
    else:
        STAGES[stage](monkeypatch, workspace)
        with pytest.raises((SufficeError, KeyboardInterrupt)):
            workspace.run(**changes())
    assert len(arrays) >= 2 * len(STATISTICS)
    assert not any(array.any() for array in arrays)


@pytest.mark.slow
@pytest.mark.parametrize("few", [0, cone_sampler.FEW], ids=["compiled", "exact path"])
@pytest.mark.parametrize("ends", ["published", "drawing", "encoding"])
def test_noise_on_a_cone_and_its_bits_are_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: str, few: int
) -> None:
    """In the very arrays, whatever the end."""
    monkeypatch.setattr(cone_sampler, "FEW", few)
    place = make_workspace(tmp_path, granted="100")
    arrays: list[Any] = []
    overwrite, refill = ConeSampler.overwrite, BufferedBits.refill

    def drawing(sampler: ConeSampler, out: Any, *, is_long: bool) -> None:
        overwrite(sampler, out, is_long=is_long)
        arrays.append(out)

    def asking(bits: BufferedBits) -> None:
        refill(bits)
        arrays.append(bits.words)

    monkeypatch.setattr(ConeSampler, "overwrite", drawing)
    monkeypatch.setattr(BufferedBits, "refill", asking)
    if ends == "drawing":
        fail_to_draw_on_a_cone(monkeypatch, place)
    if ends == "encoding":
        fail_to_encode(monkeypatch, place)
    columns = {name: {"lower": "-60", "upper": "180"} for name in ("arr_delay", "stops")}
    stated = {"family": "multivariate_normal", "columns": columns, "noise": "cone", "lattice_bits": "12"}
    with contextlib.nullcontext() if ends == "published" else pytest.raises(SufficeError):
        place.run(statistics={"s": stated}, groups={"origin": ["EWR", "JFK"]})
    assert len(arrays) >= 2
    assert not any(array.any() for array in arrays)


def test_totals_that_stay_in_a_frame_are_found(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: a local of our own code holds the exact totals, and an error passes it."""
    source = "def contained(work):\n    planted = totals()\n    return work()\n"
    spec = workspace.spec(**changes())
    sought = sought_in(spec)
    total = next(number for number, what in sought.numbers.items() if what == "an exact total")
    names: dict[str, Any] = {"totals": lambda: {"flag": [total]}}
    exec(compile(source, "planted.py", "exec"), names)  # noqa: S102 - a frame that is no test's
    monkeypatch.setattr(release_run, "contained", names["contained"])
    damage(monkeypatch, workspace)
    with pytest.raises(StageFailedError) as caught:
        suffice.release(spec, store=workspace.store, ledger=workspace.ledger)
    leaked = leaks(caught.value, sought)
    assert any("contained.planted" in each and each.endswith("an exact total") for each in leaked)
    assert any(each.startswith("the traceback with its locals") for each in leaked)


def test_a_notebook_keeps_nothing_exact(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an interactive interpreter leaves in `sys.last_value` and its like."""
    spec = workspace.spec(**changes())
    sought = sought_in(spec)
    sought.add_noise(monkeypatch)
    replace(monkeypatch, SqlLedger, "stage", RuntimeError("no"))
    shell = code.InteractiveInterpreter({"suffice": suffice, "spec": spec})
    for name in ("last_type", "last_value", "last_traceback", "last_exc"):
        monkeypatch.setattr(sys, name, None, raising=False)
    shell.runcode(
        compile(f"suffice.release(spec, {workspace.store!r}, {workspace.ledger!r})", "<cell>", "exec")
    )
    assert isinstance(sys.last_value, StageFailedError)
    assert "noise" in sought.numbers.values()
    assert leaks(sys.last_value, sought) == []


HIDDEN = 123_456_789_012_345


class Holder:
    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value


def started() -> Any:
    made: dict[str, Any] = {"HIDDEN": HIDDEN}
    exec(compile("def make():\n    held = HIDDEN\n    yield 1\n    yield held\n", "g.py", "exec"), made)  # noqa: S102
    running = made["make"]()
    next(running)
    return running


def closed_over() -> Any:
    made: dict[str, Any] = {}
    exec(compile("def make(held):\n    return lambda: held\n", "c.py", "exec"), made)  # noqa: S102
    return made["make"](HIDDEN)


def chained() -> BaseException:
    inner = ValueError(str(HIDDEN))
    outer = ValueError("safe")
    outer.__context__ = inner
    return outer


WAYS: dict[str, Callable[[], Any]] = {
    "an integer": lambda: HIDDEN,
    "a float": lambda: float(HIDDEN),
    "a NumPy scalar": lambda: np.int64(-HIDDEN),
    "an element": lambda: np.array([[1, 2], [HIDDEN, 3]]),
    "a view's base": lambda: np.array([HIDDEN, 5])[1:],
    "an array of objects": lambda: np.array([None, [HIDDEN]], dtype=object),
    "a container": lambda: {"a": [(1, {HIDDEN})]},
    "a slot": lambda: Holder([Holder(HIDDEN)]),
    "a closure": closed_over,
    "a generator": started,
    "text": lambda: f"the sum is {HIDDEN}.",
    "bytes": lambda: b"ab" + HIDDEN.to_bytes(8, "little"),
    "a large number's bytes": lambda: bytearray((HIDDEN << 60).to_bytes(16, "little")),
    "Arrow's memory": lambda: pa.table({"x": pa.array([1, HIDDEN])}),
    "another error's context": chained,
}


@pytest.mark.parametrize("way", WAYS)
def test_the_search_finds_a_planted_value(way: str) -> None:
    sought = Sought()
    sought.add("planted", [HIDDEN, HIDDEN << 60])
    names: dict[str, Any] = {"hide": WAYS[way]}
    exec(compile("def fail():\n    held = hide()\n    raise ValueError\n", "f.py", "exec"), names)  # noqa: S102
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        names["fail"]()
    assert any("fail.held" in each for each in leaks(caught.value, sought))
    other = Sought()
    other.add("planted", [HIDDEN + 1, (HIDDEN << 60) + 1])
    assert leaks(caught.value, other) == []
    assert HIDDEN > LEAST
