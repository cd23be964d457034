"""``about-N.json``: words of this release alone, in a chain, signed where the release is; or refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.errors import ReleaseCorruptError, SignatureError, StoreError, UsageError
from suffice.pipeline.spec.about import LARGEST_ABOUT, NOTHING, About
from suffice.pipeline.terms.declaration import canonical_json
from suffice.storage.operations.publishing import describe_release, mend_words
from suffice.storage.operations.verify_release import verify_release
from suffice.storage.operations.verify_store import verify_store
from suffice.storage.operations.withdrawing import withdraw
from suffice.storage.releases.about_file import (
    MOST_WORDINGS,
    Wording,
    compose_about,
    parse_about,
)
from suffice.storage.releases.manifest_reader import parse_manifest
from suffice.storage.releases.release_store import open_release
from suffice.storage.signatures.signing import Signer, load_signer, new_keys
from support.releases import NOW, RELEASE_ID, compose, make_plan, make_store, publish, smallest_files

if TYPE_CHECKING:
    from collections.abc import Sequence

PLAN = make_plan(groups={"origin": ["EWR", "JFK"]})
MANIFEST = compose(PLAN, smallest_files(PLAN))
READ = parse_manifest(MANIFEST)
NAME = PLAN.statistics[0].name


def about(title: str = "Flights") -> About:
    return About.model_validate(
        {
            "title": title,
            "statistics": {NAME: {"label": "Cancelled flights"}},
            "keys": {"origin": {"label": "Airport"}},
        }
    )


def composed(*titles: str, signer: Signer | None = None) -> list[bytes]:
    files: list[bytes] = []
    for title in titles or ("Flights",):
        standing = Wording(files=tuple(files))
        files.append(compose_about(MANIFEST, RELEASE_ID, about(title), standing, created=NOW, signer=signer))
    return files


def read(files: Sequence[bytes]) -> About:
    return parse_about(files, MANIFEST, READ, None)


def changed(data: bytes, **changes: Any) -> bytes:
    """Return other words with the checksum that they should have."""
    content = {**json.loads(data), **changes}
    if "checksum" not in changes:
        content["checksum"] = compose_checksum(content)
    return canonical_json.encode(content)


def compose_checksum(content: dict[str, Any]) -> str:
    import hashlib

    return hashlib.sha256(canonical_json.encode({**content, "checksum": None, "signature": None})).hexdigest()


def test_words_are_read_as_they_were_written() -> None:
    assert read(composed()) == about()
    assert read(composed("a", "b", "c")) == about("c")


@pytest.mark.parametrize(
    "change",
    [
        {"release_id": "cd" * 8},
        {"manifest_sha256": "0" * 64},
        {"number": 2},
        {"number": 0},
        {"replaces": "0" * 64},
        {"created": "yesterday"},
        {"format_version": 2},
        {"signature": "x"},
        {"checksum": "0" * 64},
        {"more": 1},
        {"about": None},
        {"about": {"title": "a\u202eb"}},
        {"about": {"title": "a\nb"}},
        {"about": {"title": "x" * 101}},
        {"about": {"title": "a  b"}},
        {"about": {"other": "x"}},
        {"about": {"statistics": {"none": {"label": "x"}}}},
        {"about": {"keys": {"hour": {"label": "x"}}}},
        {"about": {"keys": {"origin": {"values": {"LGA": "x"}}}}},
    ],
)
def test_hostile_words_are_refused(change: dict[str, Any]) -> None:
    (data,) = composed()
    assert read([changed(data)]) == about()
    with pytest.raises(ReleaseCorruptError, match=r"about-1\.json"):
        read([changed(data, **change)])


@given(
    st.one_of(
        st.binary(max_size=200),
        st.recursive(
            st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3)
            ),
            max_leaves=12,
        ),
    )
)
def test_whatever_stands_there_is_words_or_refused(content: object) -> None:
    data = content if isinstance(content, bytes) else changed(composed()[0], about=content)
    try:
        text = read([data])
    except ReleaseCorruptError:
        return
    assert text.document() == content


@given(st.integers(min_value=0))
def test_no_flipped_bit_is_read(position: int) -> None:
    (data,) = composed()
    broken = bytearray(data)
    broken[position // 8 % len(data)] ^= 1 << position % 8
    with pytest.raises(ReleaseCorruptError):
        read([bytes(broken)])


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b"[" * 5000, b"\xff", b" " * (LARGEST_ABOUT + 1)])
def test_bytes_that_are_no_words_are_refused(data: bytes) -> None:
    with pytest.raises(ReleaseCorruptError):
        read([data])


def test_words_follow_the_ones_before_them() -> None:
    first, second, third = composed("a", "b", "c")
    other = composed("x", "y")[0]
    for files in ([second], [first, third], [other, second], [first, first]):
        with pytest.raises(ReleaseCorruptError, match="does not follow"):
            read(files)


def test_a_release_is_described_so_many_times() -> None:
    standing = Wording(files=(b"x",) * MOST_WORDINGS)
    with pytest.raises(UsageError, match="99 times"):
        compose_about(MANIFEST, RELEASE_ID, about(), standing, created=NOW)


@pytest.fixture
def signer(tmp_path: Path) -> Signer:
    return load_signer(new_keys(tmp_path / "key.pem").private_key)


@pytest.fixture
def release(tmp_path: Path) -> Path:
    return publish(tmp_path / "store", PLAN)


def mend(release: Path, title: str, signer: Signer | None = None) -> dict[str, str]:
    written = mend_words(str(release), about(title), created=NOW, signer=signer)
    return {Path(uri).name: status for uri, status in written.items()}


def test_words_are_mended_and_no_file_is_replaced(release: Path) -> None:
    assert open_release(release).about == NOTHING
    describe_release(str(release))
    plain = {path.name: path.read_bytes() for path in release.iterdir()}
    assert mend(release, "a")["about-1.json"] == "written"
    assert mend(release, "a")["about-1.json"] == "already_there"
    done = mend(release, "b")
    assert done["about-2.json"] == "written"
    assert done["datapackage.json"] == "of_earlier_words"
    assert open_release(release).about == about("b")
    assert {name: (release / name).read_bytes() for name in plain} == plain
    assert verify_release(str(release)).ok
    assert verify_store(make_store(release.parents[2])).ok
    with pytest.raises(UsageError, match="no words"):
        mend_words(str(release), NOTHING, created=NOW)
    with pytest.raises(UsageError, match=r"about\.statistics\.none"):
        mend_words(str(release), About.model_validate({"statistics": {"none": {"label": "x"}}}), created=NOW)


def test_descriptions_have_the_words_of_their_time(release: Path) -> None:
    mend(release, "Flights that were late")
    package = json.loads((release / "datapackage.json").read_bytes())
    croissant = json.loads((release / "croissant.json").read_bytes())
    assert package["title"] == croissant["alternateName"] == "Flights that were late"
    assert package["resources"][0]["title"] == "Cancelled flights"
    assert verify_release(str(release)).ok
    (release / "datapackage.json").write_bytes(b"{}")
    assert any("datapackage.json" in problem for problem in verify_release(str(release)).problems)


def test_broken_words_are_refused_and_named(release: Path) -> None:
    mend(release, "a")
    (release / "about-1.json").write_bytes(composed("another")[0].replace(b"another", b"anohter"))
    with pytest.raises(ReleaseCorruptError, match=r"about-1\.json"):
        open_release(release)
    assert any("about-1.json" in problem for problem in verify_release(str(release)).problems)


def test_words_after_a_gap_are_told(release: Path) -> None:
    mend(release, "a")
    mend(release, "b")
    (release / "about-1.json").unlink()
    assert open_release(release).about == NOTHING
    assert any("about-2.json" in problem for problem in verify_release(str(release)).problems)


def test_a_withdrawn_release_is_described_too(release: Path) -> None:
    withdraw(str(release), reason="faulty", created=NOW)
    mend(release, "a")
    opened = open_release(release, allow_withdrawn=True)
    assert (opened.about, opened.withdrawn is not None) == (about("a"), True)


def test_two_who_describe_at_once_do_not_hide_each_other(
    release: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from suffice.storage.operations import publishing

    def meanwhile(*arguments: Any, **options: Any) -> bytes:
        monkeypatch.undo()
        mend(release, "theirs")
        return compose_about(*arguments, **options)

    monkeypatch.setattr(publishing, "compose_about", meanwhile)
    with pytest.raises(StoreError, match="just now"):
        mend(release, "ours")
    assert open_release(release).about == about("theirs")


def test_a_signed_release_has_signed_words(tmp_path: Path, signer: Signer) -> None:
    release = publish(tmp_path / "store", PLAN, signer=signer)
    keys = [signer.public_key.raw.hex()]
    with pytest.raises(UsageError, match="is signed"):
        mend(release, "a")
    mend(release, "a", signer)
    assert open_release(release, public_keys=keys).about == about("a")
    manifest = (release / "manifest.json").read_bytes()
    standing = Wording(about=about("a"), files=((release / "about-1.json").read_bytes(),))
    unsigned = compose_about(manifest, RELEASE_ID, about("b"), standing, created=NOW)
    (release / "about-2.json").write_bytes(unsigned)
    with pytest.raises(ReleaseCorruptError, match="is not signed"):
        open_release(release)
    with pytest.raises(SignatureError, match="is not signed"):
        open_release(release, public_keys=keys)


def test_words_by_another_key_are_refused_where_keys_are_pinned(tmp_path: Path, signer: Signer) -> None:
    release = publish(tmp_path / "store", PLAN, signer=signer)
    mend(release, "a", load_signer(new_keys(tmp_path / "other.pem").private_key))
    assert open_release(release).about == about("a")
    with pytest.raises(SignatureError):
        open_release(release, public_keys=[signer.public_key.raw.hex()])


def test_a_signature_of_a_release_or_a_withdrawal_is_none_of_words(signer: Signer) -> None:
    from suffice.storage.signatures.signing import WITHDRAWAL

    content = json.loads(composed("a", signer=signer)[0])
    for kind in (None, WITHDRAWAL):
        other = {**content, "signature": signer.sign(content) if kind is None else signer.sign(content, kind)}
        with pytest.raises(SignatureError):
            parse_about([canonical_json.encode(other)], MANIFEST, READ, [signer.public_key])
    assert parse_about([canonical_json.encode(content)], MANIFEST, READ, [signer.public_key]) == about("a")
