"""Options of ``suffice plan --divide``, and what it prints: shares by what each statistic needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from suffice.cli import options, output
from suffice.cli.files import OverwriteOption, check_file, new_file
from suffice.cli.output import say
from suffice.errors import UsageError
from suffice.pipeline.terms.declaration.documents import document

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.spec.plan import Plan
    from suffice.pipeline.spec.spec import Spec

AskedDivision: TypeAlias = dict[str, Any]
"""Options of a division that a command was given."""
_OPTIONS: dict[str, tuple[Any, Any]] = {
    "divide": (
        Annotated[
            bool,
            typer.Option(
                "--divide", help="Print shares by what each statistic needs, from what the spec assumes."
            ),
        ],
        False,
    ),
    "criterion": (
        Annotated[
            str | None,
            typer.Option(
                "--criterion",
                metavar="sum|maximum",
                help="What --divide makes least, of squared inflations by noise; default: sum.",
            ),
        ],
        None,
    ),
    "earlier": (
        Annotated[
            str | None,
            typer.Option(
                "--from", metavar="RELEASE", help="An earlier release whose noisy numbers --divide expects."
            ),
        ],
        None,
    ),
    "plot": (options.PlotOption, None),
    "store": (options.StoreOption, options.DEFAULT_STORE),
    "public_keys": (options.PublicKeyOption, None),
    "allow_withdrawn": (options.AllowWithdrawnOption, False),
    "overwrite": (OverwriteOption, False),
}
with_division = options.together("division", _OPTIONS, lambda asked: asked)
"""Give a command the options of a division; it gets them as ``division``."""


def check_division(asked: AskedDivision, targets: list[str]) -> None:
    """Refuse options whose question is not asked, and a picture that cannot be made.

    Raises
    ------
    UsageError, MissingExtraError
    """
    if not asked["divide"]:
        given = {"--criterion": asked["criterion"], "--from": asked["earlier"], "--plot": asked["plot"]}
        idle = [name for name, value in given.items() if value is not None]
        if idle:
            message = f"{', '.join(idle)}: of use with --divide alone: give that too"
            raise UsageError(message)
        if len(targets) > 1:
            message = "--target may repeat with --divide alone: ask for one at a time"
            raise UsageError(message)
        return
    if asked["plot"] is not None:
        from suffice.plots.style import check_plot  # matplotlib is slow to import

        check_plot(asked["plot"])
        check_file("--plot", asked["plot"], overwrite=asked["overwrite"])


def print_division(
    spec: Spec, plan: Plan, asked: AskedDivision, targets: list[str], *, as_json: bool
) -> None:
    """Divide a spec's epsilon or rho, draw it where that is asked, and print it."""
    from suffice.pipeline.ask.planning.divided_plan import divided_plan
    from suffice.pipeline.spec.plan import plan_document

    release = None
    if asked["earlier"] is not None:
        release = options.open_for_reading(
            asked["earlier"],
            asked["store"],
            asked["public_keys"],
            allow_withdrawn=asked["allow_withdrawn"],
        )
    division = divided_plan(spec, release, criterion=asked["criterion"] or "sum", targets=targets)
    plot: Path | None = asked["plot"]
    if plot is not None:
        from suffice.plots.divisions import plot_division

        with new_file("--plot", plot, overwrite=asked["overwrite"]) as written:
            plot_division(division, written, title=f"{plan.name}: {plan.loss.measure} divided by need")
    if as_json:
        output.print_json({**plan_document(plan), "divide": document(division)})
    else:
        say(division)
        output.print_written(plot)
