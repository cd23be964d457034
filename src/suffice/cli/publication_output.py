"""What commands that publish have in common: options, and what they print."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from suffice.cli import messages, output
from suffice.cli.options import check_draws
from suffice.cli.output import in_line, say
from suffice.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from suffice.pipeline.ask.pooling.release import Release
    from suffice.publishing.publish import Published
    from suffice.storage.publications.publication import Publication

ToOption = Annotated[
    str | None,
    typer.Option("--to", metavar="STORE", help="Where to publish; default: the store of the release."),
]
PublishToOption = Annotated[
    str | None,
    typer.Option(
        "--publish-to", metavar="STORE", help="Publish the answer in this store, in place of printing it."
    ),
]
PublishTimeoutOption = Annotated[
    float,
    typer.Option("--publish-timeout", metavar="SECONDS", help="How long to retry a store that fails."),
]


def check_publication_draws(draws: int, seed: int | None) -> None:
    """Refuse a number of draws or a seed that cannot be used; none are draws too."""
    check_draws(draws or 1, seed)


def print_published(published: Published, *, as_json: bool) -> None:
    """Print a publication, and whether it was found or made."""
    status = "published" if published.is_new else "found"
    document = {"status": status, **publication_document(published.publication)}
    if as_json:
        output.print_json(document)
        return
    if not published.is_new:
        words = {
            "unsigned": "unsigned",
            "checked": "signature checked",
            "not_checked": "signature not checked",
        }
        say(f"found: this was published before ({words[published.signature]}), and nothing was computed")
    print_publication(document)


def publish_model(
    releases: Sequence[Release],
    statistics: Sequence[str],
    model: Mapping[str, Any],
    to: str,
    *,
    out: object,
    as_json: bool,
    **terms: Any,
) -> None:
    """Publish what a model's command would print, and print the publication.

    Raises
    ------
    UsageError
        Where a local file is asked for as well: it would hold other draws.
    """
    if out is not None:
        message = "--publish-to publishes the draws as well: leave --out and --plot out, or publish by itself"
        raise UsageError(message)
    from suffice.publishing.asking import question_of  # numpy is slow to import
    from suffice.publishing.publish import carry_out, destination, publications_of

    destination(to)

    first, *series = releases
    question = question_of(first, statistics, series=series, model=model, **terms)
    publications = publications_of(question, to, notice=messages.notice)
    print_published(carry_out(question, publications), as_json=as_json)


_STATED = ("title", "created", "epsilon", "rho", "cost", "diagnostics")


def publication_document(publication: Publication) -> dict[str, Any]:
    """Return a publication as JSON states it."""
    stated = publication.manifest
    return {
        "publication_id": publication.publication_id,
        "uri": publication.uri,
        **{name: stated[name] for name in _STATED if name in stated},
        "signed_by": None if stated["signature"] is None else stated["signature"]["key_id"],
        "request": stated["request"],
        "files": [{**file, "uri": f"{publication.uri}/{file['path']}"} for file in stated["files"]],
    }


def print_publication(document: dict[str, Any]) -> None:
    """Print what a publication is of, what it rests on, and its files."""
    request = document["request"]
    for name in ("title", "publication_id", "uri", "created"):
        say(f"{name.replace('_', ' '):<16} {in_line(document[name])}")
    for release in request["releases"]:
        name = release["release_id"]
        measure = "epsilon" if name in document["epsilon"] else "rho"
        say(f"{'release':<16} {in_line(release['label'])} {name}, {measure} {document[measure][name]}")
    say(f"{'cost':<16} {document['cost']}: what is published follows from releases alone")
    for asked in request["statistics"]:
        priors = "; ".join(
            prior["prior"] if prior["name"] is None else f"{prior['name']}: {prior['prior']}"
            for prior in asked["priors"]
        )
        say(f"{'statistic':<16} {in_line(asked['statistic'])}{', prior ' if priors else ''}{in_line(priors)}")
        if asked["n_prior"] is not None:
            say(f"{'prior of N':<16} {in_line(asked['n_prior'])}")
    for name, choice in _told_besides(request).items():
        say(f"{name:<16} {in_line(choice)}")
    say(f"{'method':<16} {request['method']}")
    if request["mass"] is not None:
        kinds = " or ".join(dict.fromkeys(asked["interval"] for asked in request["statistics"]))
        say(f"{'intervals':<16} {kinds}, {100 * float(request['mass']):g} % posterior probability each")
        draws = f"{request['draws']} a cell, seed {request['seed']}" if request["draws"] else "none"
        say(f"{'draws':<16} {draws}")
    say(f"{'signed by':<16} {document['signed_by'] or 'nobody'}")
    for of, numbers in document["diagnostics"].items():
        texts = ", ".join(f"{name} {value}" for name, value in numbers.items())
        say(f"{'diagnostics':<16} {in_line(f'{of}: {texts}')}")
    for file in document["files"]:
        rows = "" if file["rows"] is None else f", {file['rows']} rows"
        say(f"{file['role']:<16} {in_line(file['path'])}{rows}, {file['size']} bytes")


def _told_besides(request: dict[str, Any]) -> dict[str, str]:
    """Return what of a request is not always there: its model, its cells, what was combined."""
    from suffice.pipeline.ask.publication.request import (
        Request,
        model_text,  # pydantic is slow to import
        pooled_text,
    )

    asked = Request.read(request)
    model = asked.model
    pooled = {None: "", "disjoint": "as of separate data", "same_data": "as of the same data"}
    choices = {
        "model": "" if model is None else model_text(model),
        "cells pooled": "" if asked.pooled is None else pooled_text(asked.pooled),
        "cells": ", ".join(f"{column}={key}" for column, key in request["where"].items()),
        "rolled up over": ", ".join(request["over"]),
        "releases pooled": pooled[request["relation"]],
        "vouched": "whoever asked vouched for how the releases are related" if request["vouched"] else "",
    }
    return {name: text for name, text in choices.items() if text}
