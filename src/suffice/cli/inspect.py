"""``suffice init`` and ``inspect``: the skeleton of a spec from a source, and the contract that fits it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import typer

from suffice.cli import messages, options, output
from suffice.cli.files import check_file, write_new
from suffice.cli.output import say, shows_output
from suffice.errors import SchemaError, UsageError
from suffice.pipeline.terms.declaration.documents import Count, CountOrNone, document, printed
from suffice.pipeline.terms.declaration.wording import counted

if TYPE_CHECKING:
    from suffice.pipeline.rows.sources.inspecting import Inspection
    from suffice.pipeline.terms.declaration.data_contract import DataContract


_MOST_FOLDERS = 10
_EXACT = (
    "these numbers are exact and no release: they are for the owner of the data, and for nobody else's eyes, "
    "logs or specs"
)


def inspect(
    spec: options.SpecArgument,
    contract: Annotated[
        Path | None,
        typer.Option("--contract", metavar="FILE", help="Hold the data against this contract."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write the proposed contract here.")
    ] = None,
    *,
    exact_counts: Annotated[
        bool, typer.Option("--exact-counts", help="Tell exact numbers where no terminal shows them.")
    ] = False,
    as_json: options.JsonOption = False,
) -> None:
    """Read all data; show their owner a contract that fits, and exactly how much of them fits it."""
    tells = exact_counts or shows_output()
    if not tells and out is None:
        message = (
            "inspect tells exact numbers, and no terminal shows them: ask for them with --exact-counts, or "
            "for the contract alone with --out FILE"
        )
        raise UsageError(message)
    if contract is not None and out is not None:
        message = "--out writes the contract that is proposed: leave --contract out"
        raise UsageError(message)
    check_file("--out", out, overwrite=None)
    from suffice.pipeline.rows.sources.inspecting import inspect as look
    from suffice.pipeline.spec.contract_fit import check_contract
    from suffice.pipeline.spec.spec import load_spec
    from suffice.pipeline.terms.declaration.data_contract import read_contract  # as everywhere

    loaded = load_spec(spec)
    inspection = look(loaded, None if contract is None else read_contract(str(contract)))
    problem = None
    try:
        check_contract(loaded, inspection.contract)
    except SchemaError as error:
        problem = str(error)
    if out is not None:
        write_new(out, f"{json.dumps(inspection.contract.document(), indent=2, ensure_ascii=False)}\n")
    if problem is not None:
        messages.show_warning(f"the spec does not fit the contract: {problem}")
    if tells and problem is None:
        from suffice.pipeline.rows.chunk.rule_fit import rule_fits

        inspection.columns.update(rule_fits(loaded, inspection.contract))
    counts = _counts(inspection) if tells else None
    shown = document(
        InspectionDocument(contract=inspection.contract, out=out, problem=problem, exact_counts=counts)
    )
    if as_json:
        output.print_json(shown)
    else:
        _print(shown)


class ColumnCounts(TypedDict):
    """How much of a column fits a contract."""

    column: str
    values: Count
    fit: Count
    types: dict[str, Count]


class ExactCounts(TypedDict):
    """What there is at a source, for its owner's eyes."""

    folders: CountOrNone
    files: CountOrNone
    read: CountOrNone
    rows: CountOrNone
    unread_folders: list[str]
    other_files: CountOrNone
    columns: list[ColumnCounts]


@printed("contract sha256=contract.sha256 out problem exact_counts")
@dataclass(frozen=True, slots=True, kw_only=True)
class InspectionDocument:
    """What ``suffice inspect`` shows."""

    contract: DataContract
    out: Path | None
    problem: str | None
    exact_counts: ExactCounts | None


def _counts(inspection: Inspection) -> ExactCounts:
    return {
        "folders": inspection.folders,
        "files": inspection.files,
        "read": inspection.read,
        "rows": inspection.rows,
        "unread_folders": list(inspection.unread),
        "other_files": inspection.others,
        "columns": [
            {"column": name, "values": fit.values, "fit": fit.fit, "types": dict(sorted(fit.types.items()))}
            for name, fit in inspection.columns.items()
        ],
    }


def _print(document: dict[str, Any]) -> None:
    counts = document["exact_counts"]
    if document["out"] is None:
        say(json.dumps(document["contract"], indent=2, ensure_ascii=False))
    else:
        say(f"wrote {document['out']}: read it, and grant it with suffice ledger grant --contract")
    if counts is None:
        return
    say(f"\n{_EXACT}")
    if counts["files"] is None:
        say("a catalogue says what the columns are" + ("" if counts["columns"] else ": no row was read"))
        _print_columns(counts["columns"])
        return
    folders, files = counted(counts["folders"], "folder"), counted(counts["files"], "file")
    say(f"{folders}, {files}, {counts['read']} of them readable, {counted(counts['rows'], 'row')}")
    if counts["other_files"]:
        say(f"{counted(counts['other_files'], 'file')} beside them not read, by how their names end")
    if counts["unread_folders"]:
        unread = counts["unread_folders"]
        names = ", ".join(unread[:_MOST_FOLDERS]) + ", ..." * (len(unread) > _MOST_FOLDERS)
        say(
            f"{counted(len(unread), 'folder')} of them state a value that does not read as source.hive says: "
            f"it is null in their rows, and no window holds them: {names}"
        )
    _print_columns(counts["columns"])


def _print_columns(columns: list[dict[str, Any]]) -> None:
    if not columns:
        return
    rows = [
        {
            **column,
            "does_not_fit": column["values"] - column["fit"],
            "types": ", ".join(f"{name} in {number}" for name, number in column["types"].items())
            or "derived",
        }
        for column in columns
    ]
    output.print_rows(rows, limit=len(rows))


class Skeleton(TypedDict):
    """What ``suffice init`` prints: the text of a spec, and the file that has it."""

    spec: str
    out: str | None


def init(
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="DATA",
            help="A Parquet or CSV file, directory or glob; or a source as in specs: '{delta: flights}'.",
        ),
    ] = None,
    sample: Annotated[
        str | None,
        typer.Option("--sample", metavar="FILE", help="Of CSV: propose types that fit this file's texts."),
    ] = None,
    sample_is: options.SampleIsOption = None,
    dbt: Annotated[
        str | None,
        typer.Option("--dbt", metavar="FILE", help="From an exposure in dbt's YAML; DATA may name it."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="SPEC", help="Write the skeleton here.")
    ] = None,
    *,
    as_json: options.JsonOption = False,
) -> None:
    """Write a spec skeleton from the schema alone; bounds and categories are left for a person to state."""
    from suffice.pipeline.rows.sources.skeleton import dbt_skeleton, skeleton
    from suffice.pipeline.terms.declaration.source_specs import declared_sample

    check_file("--out", out, overwrite=None)
    of_sample = None if sample is None and sample_is is None else declared_sample(sample, sample_is)[0]
    directory = out.parent if out else Path()
    if dbt is not None:
        if of_sample is not None:
            message = "--sample: dbt's file states the types: leave it out"
            raise UsageError(message)
        text = dbt_skeleton(dbt, data, relative_to=directory)
    elif data is None:
        message = "DATA is missing: name files, or --dbt and a file of dbt's"
        raise UsageError(message)
    else:
        text = skeleton(data, relative_to=directory, sample=of_sample)
    if out is not None:
        write_new(out, text)
    if as_json:
        output.print_json(Skeleton(spec=text, out=str(out) if out else None))
    elif out is None:
        say(text, end="")
    else:
        say(f"wrote {out}: state the epsilon, the bounds and the categories, then run: suffice plan {out}")
