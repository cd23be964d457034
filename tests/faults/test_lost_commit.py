"""A connection that breaks around a commit: one charge, and noise only where the commit is confirmed."""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from suffice.errors import CommitUnknownError, LedgerError
from suffice.releasing.release import carry_out
from suffice.storage.ledger.charge import Charge, ChargeRequest
from suffice.storage.ledger.opening import create_ledger, open_ledger
from suffice.storage.ledger.sql import postgres, transactions
from suffice.storage.ledger.sql.sql_ledger import SqlLedger
from suffice.storage.ledger.sql.transactions import TransactionPatience
from support.charging import MANIFEST
from support.cutting_proxy import Cut, CuttingProxy, cutting_proxy
from support.losses import pure
from support.making import make_workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

STEPS = ("reserve", "enter_drawing", "stage", "publish")
QUICK = (Cut.BEFORE, Cut.AT_ONCE, Cut.AFTER)
TRIALS = tuple(product(STEPS, QUICK, (False, True)))
"""Step, cut, and whether the server stays out of reach afterwards."""


@dataclass
class Trial:
    """What a run saw: how far it came, how often it drew, and how it ended."""

    charge: Charge | None = None
    n_draws: int = 0
    error: LedgerError | None = None


@pytest.fixture
def proxy(postgres_url: str) -> Iterator[CuttingProxy]:
    """A ledger with a large account, behind the proxy."""
    with create_ledger(postgres_url) as ledger:
        ledger.grant("flights", epsilon=Fraction(1000), reason="x")
    with cutting_proxy(postgres_url) as proxy:
        yield proxy


@contextmanager
def impatient(url: str, *, asking: float) -> Iterator[SqlLedger]:
    """Open a ledger that waits that many seconds for an answer."""
    with open_ledger(url) as ledger:
        assert isinstance(ledger, SqlLedger)
        ledger._patience = TransactionPatience(repeating=10, asking=asking)
        yield ledger


def request(name: str) -> ChargeRequest:
    return ChargeRequest(
        dataset="flights",
        name=name,
        window="all",
        **pure(Fraction(1)),
        neighboring="add_or_remove_one",
        unit="row",
        grid=None,
        source="/data",
        plan_json="{}",
        plan_hash=hashlib.sha256(b"{}").hexdigest(),
        store_id="s",
        store_uri="releases",
    )


def run(proxy: CuttingProxy, name: str, cut_at: str, cut: Cut, *, refusing: bool) -> Trial:
    """Go through a release's moves, with the connection cut at one of them."""
    trial = Trial()
    with impatient(proxy.url, asking=0.2 if refusing or cut in {Cut.HELD, Cut.SWALLOWED} else 10) as ledger:
        moves: dict[str, Callable[[Any], Charge]] = {
            "reserve": lambda _: ledger.reserve(request(name)),
            "enter_drawing": ledger.enter_drawing,
            "stage": lambda charge: ledger.stage(charge, MANIFEST),
            "publish": ledger.publish,
        }
        for step, move in moves.items():
            if step == cut_at:
                proxy.arm(cut, refusing=refusing)
            try:
                trial.charge = move(trial.charge)
            except LedgerError as error:
                trial.error = error
                return trial
            if step == "enter_drawing":
                trial.n_draws += 1  # noise would be drawn here
    return trial


def problems(url: str, name: str, trial: Trial, cut_at: str, *, refusing: bool) -> list[str]:
    """Name what a trial did that it must never do."""
    said = []
    with open_ledger(url) as ledger:
        charges = [charge for charge in ledger.charges("flights") if charge.name == name]
        if len(charges) > 1:
            said.append("charged twice")
        if trial.n_draws and not (charges and charges[0].drew):
            said.append("drew without a durable charge")
        if refusing and not isinstance(trial.error, CommitUnknownError):
            said.append("went on without knowing")
        if refusing and cut_at in {"reserve", "enter_drawing"} and trial.n_draws:
            said.append("drew without knowing")
        if not refusing and (trial.error is not None or not charges or charges[0].state != "published"):
            said.append("did not reach the end")
        said += ledger.verify()
    return said


def carry_out_trials(proxy: CuttingProxy, url: str, n_trials: int) -> None:
    for number in range(n_trials):
        cut_at, cut, refusing = TRIALS[number % len(TRIALS)]
        name = f"n{number}"
        trial = run(proxy, name, cut_at, cut, refusing=refusing)
        proxy.mend()
        assert proxy.n_cuts == number + 1
        assert problems(url, name, trial, cut_at, refusing=refusing) == [], (cut_at, cut, refusing)


@pytest.mark.slow
def test_one_charge_and_noise_only_where_it_is_confirmed(proxy: CuttingProxy, postgres_url: str) -> None:
    carry_out_trials(proxy, postgres_url, len(TRIALS))


@pytest.mark.audit
@pytest.mark.timeout(900)
def test_one_charge_and_noise_only_where_it_is_confirmed_200_times(
    proxy: CuttingProxy, postgres_url: str
) -> None:
    carry_out_trials(proxy, postgres_url, 200)


@pytest.mark.parametrize(
    ("belief", "cut", "problem"),
    [
        (True, Cut.BEFORE, "drew without a durable charge"),
        (False, Cut.AFTER, "did not reach the end"),
    ],
)
def test_whoever_guesses_is_caught(
    proxy: CuttingProxy,
    postgres_url: str,
    monkeypatch: pytest.MonkeyPatch,
    belief: bool,
    cut: Cut,
    problem: str,
) -> None:
    """Mutants: a lost answer is taken for a commit, or for none."""
    monkeypatch.setattr(transactions, "_landed", lambda *_: belief)
    trial = run(proxy, "n", "enter_drawing", cut, refusing=False)
    assert problem in problems(postgres_url, "n", trial, "enter_drawing", refusing=False)


def test_a_commit_that_is_swallowed_ends_without_a_guess(
    proxy: CuttingProxy, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No connection ends, and no answer comes: as behind a proxy whose server is gone."""
    monkeypatch.setattr(postgres, "SILENCE_SECONDS", 0.3)
    trial = run(proxy, "n", "enter_drawing", Cut.SWALLOWED, refusing=False)
    assert isinstance(trial.error, CommitUnknownError)
    assert trial.n_draws == 0
    proxy.close()
    with open_ledger(postgres_url) as ledger:
        assert ledger.verify() == ()


def test_a_server_that_falls_silent_is_not_waited_for(
    proxy: CuttingProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "SILENCE_SECONDS", 0.3)
    with impatient(proxy.url, asking=0.2) as ledger:
        proxy.arm(Cut.SWALLOWED)
        with pytest.raises(LedgerError, match="cannot be reached"):
            ledger.account("flights")
        assert ledger.account("flights").granted == Fraction(1000)


@pytest.mark.parametrize("cut_at", ["reserve", "enter_drawing"])
def test_a_lost_session_that_may_still_commit_leaves_the_outcome_unknown(
    proxy: CuttingProxy, postgres_url: str, cut_at: str
) -> None:
    """The server has not noticed yet: its session holds the head of the chain, and nobody can know."""
    trial = run(proxy, "n", cut_at, Cut.HELD, refusing=False)
    assert isinstance(trial.error, CommitUnknownError)
    assert "counts as spent" in str(trial.error)
    assert trial.n_draws == 0
    proxy.close()
    with open_ledger(postgres_url) as ledger:
        assert (
            ledger.grant("flights", epsilon=Fraction(999), reason="its locks are free again").granted == 999
        )
        assert ledger.verify() == ()


@pytest.mark.slow
@pytest.mark.parametrize("step", ["reserve", "enter_drawing", "stage", "publish"])
def test_a_whole_release_survives_a_lost_answer(
    proxy: CuttingProxy, postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    from suffice.pipeline.rows.mechanism import mechanism

    with open_ledger(postgres_url) as ledger:
        ledger.grant("passengers", epsilon=Fraction(10), reason="x")
    draws = []
    privatize, move = mechanism.privatize, getattr(SqlLedger, step)

    def counted(*arguments: object) -> object:
        draws.append(1)
        return privatize(*arguments)  # type: ignore[arg-type]

    def cut_off(*arguments: object, **options: object) -> object:
        proxy.arm(Cut.AFTER)
        return move(*arguments, **options)

    monkeypatch.setenv("SUFFICE_SPOOL", str(tmp_path / "spool"))
    monkeypatch.setattr(mechanism, "privatize", counted)
    monkeypatch.setattr(SqlLedger, step, cut_off)
    workspace = make_workspace(tmp_path)
    outcome = carry_out(workspace.spec(), store=workspace.store, ledger=proxy.url)
    assert (outcome.status, outcome.remaining.text, len(draws)) == ("published", "9", 1)
    assert proxy.n_cuts == 1
    with open_ledger(postgres_url) as ledger:
        (charge,) = ledger.charges("passengers")
        assert charge.state == "published"
        assert ledger.verify() == ()
