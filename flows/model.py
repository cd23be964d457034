"""The flow ``fit-hidden-markov``: hidden states of a release's cells, as tables, pictures and a summary."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suffice.data_files.source import fit_source
from suffice.errors import SufficeError
from suffice.flows import endings
from suffice.flows.endings import Subject
from suffice.flows.parameters import PublicUrl, Reference, refuse_passwords
from suffice.flows.running import RunResult, flow, run_work
from suffice.pipeline.ask.models.hidden_markov import hidden_markov
from suffice.pipeline.ask.models.hidden_markov_fit import HiddenMarkovFit
from suffice.profile.settings import output_folder, pinned_profile, public_keys, released_reference, setting
from suffice.publishing.model_files import check_folder, write_model
from suffice.storage.releases.release_store import open_release

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.flows.endings import Reporter
    from suffice.flows.running import Run
    from suffice.pipeline.ask.models.hidden_markov import StateComparison

_UNREAD = Subject(kind="model")


@flow(name="fit-hidden-markov")
def fit_hidden_markov(
    release: Reference | list[Reference],
    chain: list[str],
    time: list[str],
    statistics: list[str] | None,
    states: int | list[int],
    out: str,
    store: PublicUrl = None,
) -> str:
    """Fit a hidden Markov model to what was released. It reads no data and no ledger, and charges nothing.

    Parameters
    ----------
    release : str or list of str
        NAME[@WINDOW] in the store, or a path or URI inside of the stores that the profile pins; several
        windows of one series are time.
    chain : list of str
        Group columns whose keys are chains.
    time : list of str
        Group columns whose keys are time, the slowest first; may be empty where windows are time.
    statistics : list of str, optional
        Categorical and bernoulli statistics: the features. All of the release where left out.
    states : int or list of int
        How many hidden states; or several numbers, which are compared.
    out : str
        A folder on the host that runs this flow, inside of those that the profile pins. A folder below
        it, called after what was fitted, gets the tables, pictures and summary.
    store : str, optional
        Path or URI of the release store; SUFFICE_STORE and the deployment profile otherwise.

    Returns
    -------
    str
        The folder.
    """
    state: str = run_work(
        lambda run: _fitted(run, release, chain, time, statistics, states, out, store),
        unread=_UNREAD,
        failed=endings.NOT_FITTED,
    )
    return state


def _fitted(
    run: Run,
    release: str | list[str],
    chain: list[str],
    time: list[str],
    statistics: list[str] | None,
    states: int | list[int],
    out: str,
    store: str | None,
) -> RunResult:
    try:
        asked = [release] if isinstance(release, str) else release
        refuse_passwords({"store": store})
        for reference in asked:
            refuse_passwords({"release": reference})
        profile = pinned_profile()
        place = setting("store", store, profile=profile).value
        references = [released_reference(reference, profile=profile) for reference in asked]
        keys = public_keys(None, profile=profile)
        opened = [open_release(reference, store=place, public_keys=keys) for reference in references]
        labels = [each.label for each in opened]
        title = labels[0] if len(labels) == 1 else f"{labels[0]}..{labels[-1].rpartition('@')[2]}"
        numbers = [states] if isinstance(states, int) else states
        folder = output_folder(out, profile=profile) / f"{title}-{'-'.join(map(str, numbers))}-states"
        check_folder(folder)
        fit = hidden_markov(opened, statistics, chain=chain, time=time, states=states)
        write_model(fit, folder, title, fit_source("hidden Markov model", opened, fit, seed=None))
    except SufficeError as error:
        return RunResult(ending=endings.NOT_FITTED, message=endings.error_text(error), subject=_UNREAD)
    run.reporter.name_run(f"hidden states of {title}", [opened[0].dataset, opened[0].name])
    names = {"dataset": opened[0].dataset, "name": opened[0].name}
    subject = Subject(kind="model", names=names, title=f"hidden states of {title}")
    return _verdict(fit, subject, folder)


def _verdict(fit: HiddenMarkovFit | StateComparison, subject: Subject, folder: Path) -> RunResult:
    """Say what was found; everything follows from what was released."""
    if isinstance(fit, HiddenMarkovFit):
        said = [*fit.diagnostics.lines, *fit.settings.lines]
        share, stays = fit.state_share.mean(axis=0), fit.transitions.mean(axis=0)
        rows = [
            {"state": str(state + 1), "cells": f"{share[state]:.3f}", "stays": f"{stays[state, state]:.3f}"}
            for state in range(fit.n_states)
        ]
        result = f"{fit.n_states} states"
    else:
        said = fit.settings[0].lines
        rows = [
            {name: f"{row[name]:.6g}" for name in ("states", "score", "difference")} for row in fit.rows()
        ]
        result = f"best of {len(rows)} numbers of states: {fit.best}"

    def show(reporter: Reporter) -> None:
        reporter.show_table(f"hidden-states-{subject.names['name']}", rows, description=subject.title)
        reporter.show_text(
            f"model-{subject.names['name']}", "\n".join(f"- {line}" for line in said), subject.title
        )

    message = f"{result}, in {folder}; no data were read, nothing was charged"
    return RunResult(ending=endings.FITTED, message=message, subject=subject, show=show, result=str(folder))
