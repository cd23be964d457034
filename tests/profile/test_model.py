"""A profile's keys: typed, unknown ones refused, no secrets, messages with a place and no value."""

from __future__ import annotations

import pytest

from suffice.errors import ProfileError
from suffice.profile.model import DeploymentProfile, parse_profile
from support.profiles import profile_text


def parse(text: str) -> DeploymentProfile:
    return parse_profile(text.encode(), "suffice.toml")


def test_every_key_is_read() -> None:
    keys = {
        "ledger": "postgresql://releases@db.internal/ledger",
        "spool": "/srv/spool",
        "witness": "s3://audit/witness",
        "stores": ["/srv/releases", "s3a://lake/releases/"],
        "publications": ["s3://lake/posteriors"],
        "tables": ["/srv/tables", "https://statistics.example/tables"],
        "output_folders": ["/srv/models"],
        "clusters": ["threads", "tls://scheduler:8786"],
        "cluster_certificates": "/etc/suffice/cluster",
        "spec_folders": ["/srv/specs"],
        "public_keys": ["/etc/keys.pub", "AB" * 32],
        "log_format": "json",
        "stall_seconds": 900,
    }
    profile = parse(profile_text(**keys))
    assert set(keys) == set(DeploymentProfile.model_fields)
    assert profile.stores == ("/srv/releases", "s3://lake/releases")
    assert profile.public_keys == ("/etc/keys.pub", "ab" * 32)
    assert (profile.log_format, parse("").log_format) == ("json", "text")
    assert (profile.stall_seconds, parse("").stall_seconds) == (900, None)
    assert parse("").ledger is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('ledgers = "x"', "suffice.toml: ledgers: unknown key (known keys: ledger,"),
        ("ledger = 3", "ledger: must be one text"),
        ('ledger = "sqlite:///ledger.db"', "ledger: names no absolute place"),
        ('ledger = "postgresql:///ledger"', "ledger: names no absolute place"),
        ('ledger = "postgresql:///ledger?host="', "ledger: names no absolute place"),
        ('ledger = "postgresql://a:hunter2@db/ledger"', "ledger: holds a password"),
        ('ledger = "postgresql://db/ledger?password=hunter2"', "ledger: holds a password"),
        ('ledger = "mysql://hunter2@db/ledger"', "ledger: is no URL of a ledger"),
        ('stores = "/srv/releases"', "stores: must be a list"),
        ("stores = []", "stores: must be a list with at least one entry"),
        ('stores = ["releases"]', "stores: must be an absolute path"),
        ('stores = ["s3://key:hunter2@bucket/x"]', "stores: the s3:// URI has a user"),
        ("clusters = [1]", "clusters: must be one text"),
        ('spec_folders = ["../specs"]', "spec_folders: must be an absolute path"),
        ('publications = ["posteriors"]', "publications: must be an absolute path"),
        ('tables = ["tables"]', "tables: must be an absolute path"),
        ('output_folders = "/srv"', "output_folders: must be a list"),
        ('output_folders = ["out"]', "output_folders: must be an absolute path"),
        ('spool = ""', "spool: must be one text"),
        ('spool = "/a\\u0000b"', "spool: must be one text of printable"),
        ('log_format = "yaml"', "log_format: is neither text nor json"),
        ("stall_seconds = 0", "stall_seconds: must be a whole number of seconds from 1 to 86400"),
        ("stall_seconds = true", "stall_seconds: must be a whole number"),
        ('stall_seconds = "900"', "stall_seconds: must be a whole number"),
        ('ledger = "a"\nledger = "b"', "suffice.toml: this is not valid TOML"),
        ('ledger = "a"\nstores = [,]', "suffice.toml:2: this is not valid TOML"),
        ("ledger", "this is not valid TOML"),
        ("[" * 9000, "this is not valid TOML"),
    ],
)
def test_what_breaks_a_rule_is_named(text: str, said: str) -> None:
    with pytest.raises(ProfileError) as caught:
        parse(text)
    message = str(caught.value)
    assert said in message
    assert message.startswith("suffice.toml")
    assert message.endswith(")")  # a way out
    assert "hunter2" not in message
    assert caught.value.exit_status == 2


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(ProfileError, match="not UTF-8"):
        parse_profile(b"\xff\xfe", "suffice.toml")
