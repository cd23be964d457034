"""What flows that read releases may read and write, with a profile and without one."""

from __future__ import annotations

from pathlib import Path

import pytest

from suffice.errors import PinnedError, UsageError
from suffice.profile.model import DeploymentProfile
from suffice.profile.settings import output_folder, publication_store, released_reference

PINNED = DeploymentProfile.model_validate(
    {
        "stores": ["/srv/releases", "s3://lake/releases"],
        "publications": ["s3://lake/posteriors"],
        "output_folders": ["/srv/models"],
    }
)
NOTHING = DeploymentProfile()


@pytest.mark.parametrize(
    "reference",
    ["flights", "flights@2013-01", "flights@latest", "/srv/releases/a/all/0123", "s3://lake/releases/team/a"],
)
def test_releases_of_the_pinned_stores_are_read(reference: str) -> None:
    assert released_reference(reference, profile=PINNED) == reference


@pytest.mark.parametrize(
    "reference",
    [
        ".",
        "..",
        "manifest.json",
        "./a",
        "../a/b",
        "/srv/releases/../secret/a",
        "/srv/releases-of-others/a",
        "s3://lake/releases2/a",
        "/",
    ],
)
def test_releases_elsewhere_are_not(reference: str) -> None:
    with pytest.raises(PinnedError, match=r"^release: this lies outside") as caught:
        released_reference(reference, profile=PINNED)
    assert reference not in str(caught.value).replace("release:", "")
    assert released_reference(reference, profile=None) == reference
    assert released_reference(reference, profile=NOTHING) == reference


def test_a_link_out_of_a_store_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "releases").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "releases" / "link").symlink_to(tmp_path / "elsewhere")
    profile = DeploymentProfile.model_validate({"stores": [str(tmp_path / "releases")]})
    with pytest.raises(PinnedError):
        released_reference(str(tmp_path / "releases" / "link" / "a"), profile=profile)


def test_posteriors_go_where_the_profile_says() -> None:
    assert publication_store(None, store="/srv/releases", profile=PINNED) == "s3://lake/posteriors"
    assert publication_store("s3://lake/posteriors/team", store="x", profile=PINNED).endswith("/team")
    for to in ("/srv/releases", "s3://lake/posteriors2", "posteriors"):
        with pytest.raises(PinnedError, match=r"^to: this lies outside"):
            publication_store(to, store="/srv/releases", profile=PINNED)


def test_without_a_pin_of_their_own_posteriors_stay_in_the_pinned_stores() -> None:
    profile = DeploymentProfile.model_validate({"stores": ["/srv/releases"]})
    assert publication_store(None, store="/srv/releases/team", profile=profile) == "/srv/releases/team"
    with pytest.raises(PinnedError):
        publication_store("/srv/other", store="/srv/releases", profile=profile)
    for free in (None, NOTHING):
        assert publication_store(None, store="a", profile=free) == "a"
        assert publication_store("b", store="a", profile=free) == "b"


def test_one_of_several_pinned_destinations_must_be_named() -> None:
    profile = DeploymentProfile.model_validate({"publications": ["/srv/a", "/srv/b"]})
    with pytest.raises(PinnedError, match="several"):
        publication_store(None, store="/srv/a", profile=profile)
    assert publication_store("/srv/b", store="/srv/a", profile=profile) == "/srv/b"


def test_files_go_into_the_pinned_folders() -> None:
    assert output_folder("/srv/models/a", profile=PINNED) == Path("/srv/models/a")
    for folder in ("/srv/models2", "/srv/models/../x", "out", "/"):
        with pytest.raises(PinnedError, match=r"^out: this lies outside"):
            output_folder(folder, profile=PINNED)
        assert output_folder(folder, profile=NOTHING) == Path(folder)


@pytest.mark.parametrize("text", ["", " ", "a\0b", "\ud800", "x" * 70000])
def test_no_text_of_a_parameter_is_taken(text: str) -> None:
    with pytest.raises(UsageError):
        released_reference(text, profile=PINNED)
    with pytest.raises(UsageError):
        publication_store(text, store="a", profile=None)
    with pytest.raises(UsageError):
        output_folder(text, profile=None)
