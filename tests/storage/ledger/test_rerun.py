from __future__ import annotations

import hashlib
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

import pytest

from suffice.errors import ChargeInProgressError, ChargeSpentError, SpecChangedError, WrongStoreError
from suffice.storage.ledger.charge import Charge, ChargeRequest, ChargeState, this_process
from suffice.storage.ledger.rerun import Decision, decide_rerun, differing_keys

if TYPE_CHECKING:
    from collections.abc import Callable

    MakeRequest = Callable[..., ChargeRequest]

PRINT_PROCESS = "from suffice.storage.ledger.charge import this_process; print(this_process())"
NO_PLANS: dict[str, str] = {}
NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
LIVE, EXPIRED = NOW + timedelta(seconds=1), NOW


def charge_for(
    request: ChargeRequest, state: str, *, drew: bool, lease: datetime = EXPIRED, holder: str = "{}"
) -> Charge:
    return Charge(
        charge_id="c",
        release_id="r",
        ledger_id="l",
        dataset=request.dataset,
        name=request.name,
        window=request.window,
        amendment=request.amendment,
        amends=None,
        attempt=1,
        loss=request.loss,
        state=ChargeState(state),
        marked=drew,
        drew=drew,
        epoch=1,
        lease_expires=lease,
        holder_process=holder,
        run="0" * 16,
        spool=None,
        plan_hash=request.plan_hash,
        store_id=request.store_id,
        store_uri=request.store_uri,
        reserved_sequence=3,
        drawing_sequence=None,
        drawing_hash=None,
        manifest_sha256=None,
        manifest=None,
        created=NOW - timedelta(hours=1),
    )


def plans_of(request: ChargeRequest) -> Callable[[str], str]:
    """Return what a ledger knows of plans that was charged for one request."""
    return {request.plan_hash: request.plan_json}.__getitem__


@pytest.mark.parametrize(
    ("state", "drew", "lease", "plain", "again"),
    [
        ("reserved", False, LIVE, ChargeInProgressError, ChargeInProgressError),
        ("reserved", False, EXPIRED, Decision.TAKE_OVER, Decision.TAKE_OVER),
        ("drawing", True, LIVE, ChargeInProgressError, ChargeInProgressError),
        ("drawing", True, EXPIRED, Decision.ABANDON_AND_REFUSE, Decision.ABANDON_AND_START),
        ("staged", True, LIVE, Decision.PUBLISH_STAGED, Decision.PUBLISH_STAGED),
        ("staged", True, EXPIRED, Decision.PUBLISH_STAGED, Decision.PUBLISH_STAGED),
        ("published", True, LIVE, Decision.ALREADY_PUBLISHED, Decision.ALREADY_PUBLISHED),
        ("published", True, EXPIRED, Decision.ALREADY_PUBLISHED, Decision.ALREADY_PUBLISHED),
        ("abandoned", False, LIVE, Decision.START, Decision.START),
        ("abandoned", True, EXPIRED, ChargeSpentError, Decision.START),
    ],
)
def test_every_state_has_its_rule(
    make_request: MakeRequest,
    state: str,
    drew: bool,
    lease: datetime,
    plain: Decision | type[Exception],
    again: Decision | type[Exception],
) -> None:
    request = make_request()
    charge = charge_for(request, state, drew=drew, lease=lease)
    for new_attempt, expected in ((False, plain), (True, again)):
        if isinstance(expected, Decision):
            assert (
                decide_rerun(charge, request, now=NOW, new_attempt=new_attempt, plan_of=NO_PLANS.__getitem__)
                is expected
            )
        else:
            with pytest.raises(expected):
                decide_rerun(charge, request, now=NOW, new_attempt=new_attempt, plan_of=NO_PLANS.__getitem__)


def test_no_charge_starts(make_request: MakeRequest) -> None:
    assert (
        decide_rerun(None, make_request(), now=NOW, new_attempt=False, plan_of=NO_PLANS.__getitem__)
        is Decision.START
    )


@pytest.mark.parametrize("state", list(ChargeState))
def test_another_plan_or_store_is_refused_in_every_state(make_request: MakeRequest, state: str) -> None:
    first = make_request(plan={"privacy": {"epsilon": "1"}, "statistics": {"a": {"upper": "2"}}})
    charge = charge_for(first, state, drew=state not in {"reserved", "abandoned"})
    other = make_request(plan={"privacy": {"epsilon": "2"}, "statistics": {"a": {"upper": "2"}, "b": {}}})
    with pytest.raises(
        SpecChangedError, match=r"choose another name .*privacy\.epsilon, statistics\.b"
    ) as caught:
        decide_rerun(charge, other, now=NOW, new_attempt=True, plan_of=plans_of(first))
    assert caught.value.differing_keys == ("privacy.epsilon", "statistics.b")
    elsewhere = make_request(
        plan={"privacy": {"epsilon": "1"}, "statistics": {"a": {"upper": "2"}}}, store_id="2"
    )
    with pytest.raises(
        WrongStoreError,
        match=r"first charged for the store store-1 at releases; releases is the store 2: .*store adopt",
    ):
        decide_rerun(charge, elsewhere, now=NOW, new_attempt=True, plan_of=NO_PLANS.__getitem__)


def test_a_lease_of_a_dead_process_does_not_hold(make_request: MakeRequest) -> None:
    request = make_request()
    with subprocess.Popen([sys.executable, "-c", PRINT_PROCESS], stdout=subprocess.PIPE, text=True) as run:
        holder, _ = run.communicate()
    for process, expected in ((holder, Decision.TAKE_OVER), (this_process(), None), ("{}", None)):
        charge = charge_for(request, "reserved", drew=False, lease=LIVE, holder=process)
        decide = partial(decide_rerun, charge, request, now=NOW, plan_of=NO_PLANS.__getitem__)
        if expected is not None:
            assert decide(new_attempt=False) is expected
        else:
            with pytest.raises(ChargeInProgressError):
                decide(new_attempt=True)


def test_messages_tell_no_time_of_a_run_and_what_it_costs(make_request: MakeRequest) -> None:
    request = make_request(window="2013-01", epsilon=Fraction(1, 4))
    with pytest.raises(
        ChargeInProgressError,
        match=r"delays@2013-01 is in progress; .* its lease passes within 2 minutes",
    ) as caught:
        decide_rerun(
            charge_for(request, "drawing", drew=True, lease=LIVE),
            request,
            now=NOW,
            new_attempt=False,
            plan_of=NO_PLANS.__getitem__,
        )
    assert caught.value.seconds == 1
    with pytest.raises(ChargeSpentError, match=r"^epsilon 0\.25 is spent .*--new-attempt .*charged again"):
        decide_rerun(
            charge_for(request, "abandoned", drew=True),
            request,
            now=NOW,
            new_attempt=False,
            plan_of=NO_PLANS.__getitem__,
        )


def test_a_message_names_only_the_first_of_many_keys(make_request: MakeRequest) -> None:
    first, second = ({f"k{i:02}": str(i + step) for i in range(20)} for step in (0, 1))
    earlier = make_request(plan=first)
    charge = charge_for(earlier, "published", drew=True)
    with pytest.raises(SpecChangedError, match=r"k07 and 12 more\)$") as caught:
        decide_rerun(charge, make_request(plan=second), now=NOW, new_attempt=False, plan_of=plans_of(earlier))
    assert len(caught.value.differing_keys) == 20


@pytest.mark.parametrize(
    ("first", "second", "keys"),
    [
        ("{}", "{}", ()),
        ('{"a":null}', "{}", ("a",)),
        ('{"a":{"b":"1"}}', '{"a":"1"}', ("a",)),
        ('{"a":{"b":["1"],"c":"1"}}', '{"a":{"b":["2"],"c":"1"},"d":"1"}', ("a.b", "d")),
    ],
)
def test_differing_keys(first: str, second: str, keys: tuple[str, ...]) -> None:
    assert differing_keys(first, second) == differing_keys(second, first) == keys


def test_a_request_must_carry_its_own_plan_hash(make_request: MakeRequest) -> None:
    with pytest.raises(ValueError, match="SHA-256"):
        make_request(plan_hash=hashlib.sha256(b"other").hexdigest())


@pytest.mark.parametrize(
    "fields",
    [
        {"dataset": "Flights"},
        {"name": "a/b"},
        {"name": "a" * 64},
        {"window": "2013-01", "grid": None},
        {"grid": "day:month:UTC"},
        {"window": "", "grid": "day:month:UTC"},
        {"epsilon": Fraction(0)},
        {"epsilon": Fraction(1, 3)},
        {"epsilon": Fraction(1, 10**7)},
    ],
)
def test_a_request_that_breaks_a_rule_is_refused(
    make_request: MakeRequest, fields: dict[str, object]
) -> None:
    with pytest.raises(ValueError, match=r".+"):
        make_request(**fields)
