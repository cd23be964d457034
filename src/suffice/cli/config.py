"""``suffice config``: what a command would work with here, and who decided it."""

from __future__ import annotations

import os
from typing import Annotated, TypedDict

import typer

from suffice.cli import output
from suffice.cli.options import JsonOption  # noqa: TC001 - Typer reads it
from suffice.cli.output import say
from suffice.errors import PinnedError, UsageError
from suffice.profile import finding, settings
from suffice.profile.values import LOG_FORMATS, redacted

app = typer.Typer(
    help="What commands work with here, and who decided it.", rich_markup_mode=None, no_args_is_help=True
)


class ShownSetting(TypedDict):
    """A value, where it came from, and what the profile allows in its place."""

    name: str
    origin: str
    value: str | None
    allowed: list[str]
    refused: bool


class ShownProfile(TypedDict):
    """Where a deployment profile lies, and who named it."""

    path: str
    origin: str


class ConfigDocument(TypedDict):
    """What a command would work with."""

    profile: ShownProfile | None
    ignored: list[str]
    settings: list[ShownSetting]


@app.command()
def show(
    ledger_url: Annotated[
        str | None, typer.Option("--ledger", metavar="URL", help="As if a command were given it.")
    ] = None,
    store_uri: Annotated[str | None, typer.Option("--store", metavar="URI", help="As above.")] = None,
    cluster_address: Annotated[
        str | None, typer.Option("--cluster", metavar="ADDRESS", help="As above.")
    ] = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Show which deployment profile holds, each value, and where it came from; never a secret."""
    in_force = finding.find_profile()
    asked = {"ledger": ledger_url, "store": store_uri, "cluster": cluster_address}
    rows = {name: _row(name, asked.get(name), in_force) for name in settings.VARIABLES}
    rows["spool"] = _spool_row(rows["spool"], rows["ledger"], asked["ledger"], in_force)
    listed = [*rows.values(), _keys_row(in_force), *_other_rows(in_force)]
    shown: ConfigDocument = {
        "profile": None if in_force is None else {"path": in_force.path, "origin": in_force.origin},
        "ignored": _ignored(in_force),
        "settings": listed,
    }
    if as_json:
        output.print_json(shown)
    else:
        _print(shown)
    if any(row["refused"] for row in listed):
        raise typer.Exit(UsageError.exit_status)


def _row(name: str, given: str | None, in_force: finding.ProfileInForce | None) -> ShownSetting:
    """Describe one value; one that the profile refuses is shown as that, for whoever has to mend it."""
    profile = in_force.profile if in_force else None
    value, origin, refused = given, "option", False
    try:
        chosen = settings.setting(name, given, profile=profile, option=f"--{name}")
        value, origin = chosen.value, "option" if given is not None else chosen.origin
    except PinnedError:
        refused = True
        if given is None:
            value = os.environ.get(settings.VARIABLES[name]) or None
            origin = "nobody" if value is None else "environment"
    allowed = getattr(profile, {"store": "stores", "cluster": "clusters"}.get(name, name), None)
    pinned = [allowed] if isinstance(allowed, str) else list(allowed or ())
    return _described(name, value, origin, pinned, refused=refused)


def _spool_row(
    row: ShownSetting, ledger: ShownSetting, given: str | None, in_force: finding.ProfileInForce | None
) -> ShownSetting:
    """Describe where drawn files wait: beside an SQLite ledger, unless a place is named."""
    if row["value"] is not None or row["refused"] or ledger["refused"]:
        return row
    chosen = settings.setting(
        "ledger", given, profile=in_force.profile if in_force else None, option="--ledger"
    )
    from suffice.storage.releases.spool import spool_path  # it reads Parquet

    beside = spool_path(chosen.value or "", None)
    if beside is None:
        return {**row, "origin": "nobody", "refused": True}
    return {**row, "value": str(beside), "origin": "beside the ledger"}


def _keys_row(in_force: finding.ProfileInForce | None) -> ShownSetting:
    profile = in_force.profile if in_force else None
    pinned = list(profile.public_keys or ()) if profile else []
    named = os.environ.get(settings.PUBLIC_KEYS) or None
    try:
        settings.public_keys(None, profile=profile)
        refused = False
    except PinnedError:
        refused = True
    value = named or os.pathsep.join(pinned) or None
    origin = "environment" if named else "profile" if pinned else "default"
    return _described("public_keys", value, origin, pinned, refused=refused)


def _other_rows(in_force: finding.ProfileInForce | None) -> list[ShownSetting]:
    profile = in_force.profile if in_force else None
    rows = []
    for name in ("spec_folders", "publications", "tables", "output_folders"):
        allowed = list(getattr(profile, name, None) or ())
        rows.append(_described(name, None, "profile" if allowed else "default", allowed, refused=False))
    written = settings.log_setting()
    rows.append(_described("log_format", written.value, written.origin, [], refused=False))
    stalls = settings.stall_setting()
    return [*rows, _described("stall_seconds", stalls.value, stalls.origin, [], refused=False)]


def _described(
    name: str, value: str | None, origin: str, allowed: list[str], *, refused: bool
) -> ShownSetting:
    return {
        "name": name,
        "value": None if value is None else redacted(value),
        "origin": origin,
        "allowed": [redacted(place) for place in allowed],
        "refused": refused,
    }


def _ignored(in_force: finding.ProfileInForce | None) -> list[str]:
    """Name the variable that names another profile than the one that holds."""
    named = os.environ.get(finding.CONFIG)
    is_ignored = (
        in_force is not None and in_force.origin != "environment" and bool(named) and named != in_force.path
    )
    return [finding.CONFIG] if is_ignored else []


def _print(document: ConfigDocument) -> None:
    profile = document["profile"]
    say("profile: none" if profile is None else f"profile: {profile['path']} ({profile['origin']})")
    for variable in document["ignored"]:
        say(f"{variable} is set and ignored: it names another profile")
    say("")
    rows = [
        {
            "setting": row["name"],
            "value": row["value"] or "none",
            "from": f"{row['origin']}, refused" if row["refused"] else row["origin"],
            "allowed": _allowed_text(row),
        }
        for row in document["settings"]
    ]
    output.print_rows(rows)


def _allowed_text(row: ShownSetting) -> str:
    if row["name"] == "log_format":
        return ", ".join(LOG_FORMATS)
    if row["allowed"] == [row["value"]]:
        return "this alone"
    return ", ".join(row["allowed"]) or "anything"
