"""Bad inputs end in a typed error that says where, in few words, holds no data value and charges nothing."""

from __future__ import annotations

from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from suffice import errors
from suffice.errors import UsageError
from suffice.pipeline.spec import spec as specs
from suffice.releasing import release as releasing
from support import bad_inputs
from support.bad_inputs import CANARIES, Case, Findings, Place, ask, make_place
from support.making import make_workspace

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.timeout(900)

FEWEST = 3000
STRIDES = {bad_inputs.spec_cases.__name__: 9, bad_inputs.option_cases.__name__: 5}
"""Every ninth spec and every fifth option outside of the audit, which takes all.

An option has 24 cases and an argument 22: a step without a common divisor gives each some, and each text.
"""
SHARES = 2
"""Every second input is one test's: two processes share the work, and a place for it takes seconds."""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """Data, a release and ledgers; commands run in a directory that they may fill with files."""
    made = make_place(tmp_path)
    with commands_run_in(made.directory):
        yield made


@pytest.fixture
def untouched(tmp_path: Path) -> Iterator[Place]:
    """A place for the tests of the judge: no bad input has moved its store or changed its ledger."""
    workspace = make_workspace(tmp_path / "place")
    with commands_run_in(tmp_path):
        yield Place(workspace=workspace, grants=workspace.ledger, directory=tmp_path)


@contextmanager
def commands_run_in(directory: Path) -> Iterator[None]:
    """Change to a directory, and forget what the environment says of ledgers and stores."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(directory)
        for variable in ("LEDGER", "STORE", "CLUSTER", "CONFIG", "PUBLIC_KEYS", "SIGNING_KEY"):
            patch.delenv(f"SUFFICE_{variable}", raising=False)
        yield


@pytest.mark.slow
@pytest.mark.parametrize("share", range(SHARES))
@pytest.mark.parametrize("strides", [STRIDES, pytest.param({}, marks=pytest.mark.audit)], ids=["some", "all"])
def test_bad_inputs_end_well(place: Place, strides: dict[str, int], share: int) -> None:
    findings = Findings()
    for source in bad_inputs.SOURCES:
        stride = strides.get(source.__name__, 1)
        for case in islice(source(place), share * stride, None, SHARES * stride):
            ask(case, findings)
    assert findings.wrong == []
    assert findings.n_bad >= FEWEST / SHARES, findings.n_asked


def raising(error: Exception) -> Any:
    """Return what raises in the place of any function."""

    def fail(*_: object, **__: object) -> NoReturn:
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (KeyError("x"), "internal error"),
        (UsageError("this is not right"), "without a place"),
        (UsageError(f"mutant.json: {CANARIES[0]}"), "a data value"),
        (UsageError("mutant.json: Input should be a valid string"), "another library's words"),
    ],
)
def test_the_judge_sees_a_bad_answer(
    untouched: Place, monkeypatch: pytest.MonkeyPatch, error: Exception, answer: str
) -> None:
    monkeypatch.setattr(specs, "load_spec", raising(error))
    assert answer in the_finding(case_of(untouched, "release"))


def test_the_judge_finds_nothing_in_a_good_refusal(untouched: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(specs, "load_spec", raising(UsageError("mutant.json: this is not right")))
    assert not the_finding(case_of(untouched, "release"))


def test_the_judge_sees_a_long_message(untouched: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors, "bounded_message", lambda text: text)
    case = case_of(untouched, "release")
    words = ("release", str(untouched.directory / "mutant.json"), "--window", "x" * 10_000, *case.words[2:])
    long = Case(words=words, places=("--window",), files=case.files, ledger=case.ledger)
    assert "over 500 characters" in the_finding(long)


def test_the_judge_sees_a_charge(untouched: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    charge = releasing.carry_out

    def charge_and_fail(*arguments: Any, **terms: Any) -> NoReturn:
        charge(*arguments, **terms)
        message = "mutant.json: refused too late"
        raise UsageError(message)

    monkeypatch.setattr(releasing, "carry_out", charge_and_fail)
    assert "charged" in the_finding(case_of(untouched, "release"))


def case_of(place: Place, command: str) -> Case:
    """Return a command over a good spec, in a file of its own."""
    path = place.directory / "mutant.json"
    shop = ("--store", place.workspace.store, "--ledger", place.workspace.ledger)
    content = Path(place.workspace.write_spec(name="judged")).read_bytes()
    return Case(
        words=(command, str(path), *shop),
        places=("mutant.json",),
        files=((path, content),),
        ledger=place.workspace.ledger,
    )


def the_finding(case: Case) -> str:
    """Return what is wrong with an answer, empty where nothing is."""
    findings = Findings()
    ask(case, findings)
    return "; ".join(findings.wrong)
