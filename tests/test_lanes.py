"""The two lanes of tests: what runs where, and in which order."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from support.collecting import FromTheEnd, is_from_the_end
from support.lanes import servers_first, slow_without_the_mark


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


def test_files_that_were_collected_from_the_end_are_turned_round_whole() -> None:
    items = [item(f"tests/test_{file}.py", name) for file in "ba" for name in ("one", "two")]
    turned = list(items)
    FromTheEnd().pytest_collection_modifyitems(turned)
    assert turned == [items[index] for index in (2, 3, 0, 1)]


def test_each_second_process_collects_a_directory_from_the_end(repository: Path) -> None:
    everything, one = [str(repository / "tests")], [__file__]
    workers = ("", "gw0", "gw1", "gw2", "gw13")
    assert [is_from_the_end(worker, everything) for worker in workers] == [False, False, True, False, True]
    assert not any(is_from_the_end("gw1", arguments) for arguments in (one, everything * 2, []))


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
