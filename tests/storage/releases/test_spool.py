"""The spool: private, with room made beforehand, and complete only with its marker and every byte."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from suffice.errors import SpoolError, UsageError
from suffice.storage.operations.spooling import spool_files, spool_sizes
from suffice.storage.releases.spool import Spool, find_spool, open_spool, spool_path
from support.releases import HASH, LEDGER_ID, NOW, RELEASE_ID, compose, make_plan, public_n_plan, some_values

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.spec.plan import Plan
    from suffice.storage.releases.spool_entry import SpoolEntry


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return open_spool(tmp_path / "spool")


def charge_for(plan: Plan, **changes: Any) -> Any:
    """Return as much of a charge as a spool looks at."""
    fields = {
        "charge_id": "c" * 32,
        "attempt": 1,
        "epoch": 1,
        "run": "0" * 16,
        "ledger_id": LEDGER_ID,
        "release_id": RELEASE_ID,
        "plan_hash": plan.plan_hash,
        "drawing_hash": HASH,
        "window": "all",
        "amendment": 0,
        "amends": None,
    }
    return SimpleNamespace(**{**fields, **changes})


def filled(spool: Spool, plan: Plan, charge: Any) -> SpoolEntry:
    """Spool a whole release, in blocks of one cell."""
    entry = spool.reserve(charge, spool_sizes(plan, charge, NOW))
    values = some_values(plan)
    blocks = (
        (statistic.name, values[statistic.name][cell : cell + 1].copy())
        for statistic in plan.statistics
        for cell in range(plan.n_cells)
    )
    files = spool_files(entry, plan, blocks)
    entry.finish(charge, compose(plan, files))
    return entry


@pytest.mark.parametrize("plan", [make_plan(), public_n_plan()], ids=["private n", "public n"])
def test_room_is_what_the_files_need(spool: Spool, plan: Plan) -> None:
    charge = charge_for(plan)
    sizes = spool_sizes(plan, charge, NOW)
    entry = spool.reserve(charge, sizes)
    for name, size in sizes.items():
        state = (entry.path / name).stat()
        assert state.st_size == size
        assert state.st_blocks * 512 >= size  # blocks of its own: no hole
        assert state.st_mode & 0o077 == 0
    assert entry.path.stat().st_mode & 0o077 == 0
    assert spool.complete(charge) is None
    filled(spool, plan, charge)
    written = {name: (entry.path / name).stat().st_size for name in sizes}
    manifest = "manifest.json"
    assert {name: size for name, size in written.items() if name != manifest} == {
        name: size for name, size in sizes.items() if name != manifest
    }
    assert written[manifest] <= sizes[manifest]


@pytest.mark.parametrize(
    "changes",
    [
        {"charge_id": "d" * 32},
        {"attempt": 2},
        {"epoch": 0},
        {"ledger_id": "0" * 32},
        {"release_id": "0" * 16},
        {"plan_hash": "0" * 64},
        {"drawing_hash": "0" * 64},
    ],
)
def test_a_spool_is_complete_for_its_own_draw_alone(spool: Spool, changes: dict[str, Any]) -> None:
    plan = make_plan()
    filled(spool, plan, charge_for(plan))
    assert spool.complete(charge_for(plan)) is not None
    assert spool.complete(charge_for(plan, epoch=3)) is not None  # taken over since
    assert spool.complete(charge_for(plan, **changes)) is None


def test_every_byte_counts(spool: Spool) -> None:
    plan = make_plan()
    charge = charge_for(plan)
    entry = filled(spool, plan, charge)
    for path in sorted(entry.path.iterdir()):
        data = path.read_bytes()
        for damaged in (data[:-1], data[:-1] + bytes([data[-1] ^ 1]), b""):
            path.write_bytes(damaged)
            assert spool.complete(charge) is None
        path.unlink()
        if path.name != "manifest.json":
            assert spool.complete(charge) is None
        path.write_bytes(data)
        assert spool.complete(charge) is not None


def test_what_a_charge_left_is_removed(spool: Spool) -> None:
    plan = make_plan()
    filled(spool, plan, charge_for(plan))
    filled(spool, plan, charge_for(plan, charge_id="d" * 32))
    assert spool.charge_ids() == ("c" * 32, "d" * 32)
    spool.remove("c" * 32)
    assert spool.charge_ids() == ("d" * 32,)
    again = spool.reserve(charge_for(plan, charge_id="d" * 32, epoch=2), {"x": 1})
    assert spool.complete(charge_for(plan, charge_id="d" * 32, epoch=2)) is None
    assert [path.name for path in spool.path.glob("d*")] == [again.path.name]


def test_blocks_that_are_not_the_plans_are_refused(spool: Spool) -> None:
    plan = make_plan()
    charge = charge_for(plan)
    values = some_values(plan)
    for names in (["cancelled"], ["carrier"], []):
        entry = spool.reserve(charge, spool_sizes(plan, charge, NOW))
        with pytest.raises(ValueError, match=r"blocks|shape"):
            spool_files(entry, plan, ((name, values[name].copy()) for name in names))


def test_a_spool_keeps_its_id(tmp_path: Path) -> None:
    first = open_spool(tmp_path / "spool")
    assert open_spool(tmp_path / "spool") == first
    assert find_spool(tmp_path / "spool") == first
    assert open_spool(tmp_path / "other").name.spool_id != first.name.spool_id
    assert find_spool(tmp_path / "absent") is None
    (tmp_path / "spool" / "spool.json").write_bytes(b"{}")
    with pytest.raises(SpoolError, match="does not say which spool"):
        open_spool(tmp_path / "spool")


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o1777])
def test_a_spool_that_others_may_write_to_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "spool"
    path.mkdir()
    path.chmod(mode)
    with pytest.raises(UsageError, match="others may write"):
        open_spool(path)


def test_where_the_spool_is(tmp_path: Path) -> None:
    assert spool_path("sqlite:////srv/ledger.db", None) == spool_path(
        "postgresql://x/y", "/srv/ledger.db.spool"
    )
    assert spool_path("postgresql://host/database", None) is None
    with pytest.raises(UsageError, match="SUFFICE_SPOOL"):
        open_spool(None)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises((UsageError, SpoolError)):
        open_spool(tmp_path / "file")
    with pytest.raises(SpoolError, match="no such file or directory"):
        open_spool(tmp_path / "absent" / "spool")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
