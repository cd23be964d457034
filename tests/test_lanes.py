"""The two lanes of tests: what runs where, and in which order."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from support.collecting import InAnotherOrder, from_the_end, from_the_middle, order_of
from support.lanes import servers_first, slow_without_the_mark

if TYPE_CHECKING:
    from collections.abc import Callable


def item(path: str, *fixtures: str) -> Any:
    return SimpleNamespace(path=Path(path), fixturenames=fixtures)


def report(when: str, duration: float, *keywords: str) -> Any:
    return SimpleNamespace(when=when, duration=duration, keywords=dict.fromkeys(keywords, 1))


def test_files_that_need_a_server_come_first_and_whole() -> None:
    items = [
        item("tests/cli/test_a.py"),
        item("tests/flows/test_b.py"),
        item("tests/storage/test_c.py"),
        item("tests/storage/test_c.py", "tmp_path", "ledger_url"),
        item("tests/test_d.py"),
        item("tests/test_e.py", "s3_url"),
    ]
    assert servers_first(items) == [items[index] for index in (1, 2, 3, 5, 0, 4)]


@pytest.mark.parametrize(("turned", "order"), [(from_the_end, "cba"), (from_the_middle, "bca")])
def test_files_that_were_collected_in_another_order_are_brought_back_whole(
    turned: Callable[[list[Any]], list[Any]], order: str
) -> None:
    files = [[item(f"tests/test_{file}.py", name) for name in ("two", "one")] for file in "abc"]
    items = list(chain.from_iterable(turned(files)))
    assert [each.path.stem[-1] for each in items[::2]] == list(order)
    InAnotherOrder(turned).pytest_collection_modifyitems(items)
    assert items == list(chain.from_iterable(files))


def test_processes_collect_a_directory_in_orders_of_their_own(repository: Path) -> None:
    everything, single = [str(repository / "tests")], [__file__]
    orders = [order_of(worker, everything) for worker in ("", "gw0", "gw1", "gw2", "gw13")]
    turned = [order and order._turned for order in orders]
    assert turned == [None, None, from_the_end, from_the_middle, from_the_end]
    assert not any(order_of("gw1", arguments) for arguments in (single, everything * 2, []))


def test_an_item_without_fixtures_has_no_server() -> None:
    doctest = cast("Any", SimpleNamespace(path=Path("tests/test_d.py")))
    assert servers_first([doctest]) == [doctest]


def test_tests_of_a_second_without_the_mark_are_named_longest_first() -> None:
    short, long = report("call", 1.0), report("call", 2.5)
    others = [report("setup", 20.0), report("call", 0.99), report("call", 9.0, "slow")]
    assert slow_without_the_mark([short, *others, long]) == [long, short]


def test_make_test_leaves_out_the_slow_lane_and_ci_runs_both(repository: Path) -> None:
    makefile = (repository / "Makefile").read_text()
    assert '-m "not audit and not wheel$(if $(SLOW),, and not slow)"' in makefile
    assert "SLOW=yes" in (repository / ".ci/run").read_text()
    assert "SLOW=yes" in (repository / ".github/workflows/ci.yml").read_text()
