"""File systems of other machines are told from local ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from suffice.errors import LedgerError
from suffice.storage.ledger.opening import create_ledger, open_ledger
from suffice.storage.objects import local_files as mounts
from suffice.storage.objects.local_files import file_system, is_network, network_file_system

MOUNTINFO = r"""
22 28 0:21 / /proc rw,nosuid shared:12 - proc proc rw
28 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
29 28 0:30 / /run rw - tmpfs tmpfs rw
30 28 0:31 / /srv rw,relatime shared:20 master:3 - nfs4 server:/export rw,vers=4.2
31 30 8:1 / /srv/local rw - xfs /dev/sda1 rw
32 28 0:33 / /mnt/two\040words rw - cifs //server/share rw
33 28 0:34 / /home/me/remote rw - fuse.sshfs me@host:/ rw
34 28 0:35 / /mnt/over rw - ext4 /dev/sdb1 rw
35 34 0:36 / /mnt/over rw - 9p host rw,trans=virtio
36 28 0:37 / /data rw - lustre 10.0.0.1@tcp:/fs rw
a line that is none
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/ledger.db", "ext4"),
        ("/run/ledger.db", "tmpfs"),
        ("/srv/ledger.db", "nfs4"),
        ("/srv/deep/down/ledger.db", "nfs4"),
        ("/srv/local/ledger.db", "xfs"),
        ("/srvlocal/ledger.db", "ext4"),
        ("/mnt/two words/ledger.db", "cifs"),
        ("/home/me/remote/ledger.db", "fuse.sshfs"),
        ("/mnt/over/ledger.db", "9p"),
        ("/data/ledger.db", "lustre"),
    ],
)
def test_the_deepest_and_latest_mount_counts(path: str, kind: str) -> None:
    assert file_system(Path(path), MOUNTINFO) == kind


def test_no_mounts_no_file_system() -> None:
    assert file_system(Path("/ledger.db"), "") is None


NETWORK = "nfs nfs4 cifs smb3 9p ceph glusterfs lustre gpfs afs fuse.sshfs fuse.glusterfs fuse.rclone"
LOCAL = "ext4 xfs btrfs zfs tmpfs overlay apfs virtiofs fuseblk fuse.fuse-overlayfs fuse.gocryptfs"


@pytest.mark.parametrize("kind", NETWORK.split())
def test_network_file_systems(kind: str) -> None:
    assert is_network(kind)


@pytest.mark.parametrize("kind", LOCAL.split())
def test_local_file_systems(kind: str) -> None:
    assert not is_network(kind)


def test_a_ledger_on_a_network_file_system_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote = tmp_path / "remote"
    remote.mkdir()
    link = tmp_path / "link"
    link.symlink_to(remote)
    listing = tmp_path / "mountinfo"
    listing.write_text(f"1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:9 / {remote} rw - nfs4 server:/ rw\n")
    monkeypatch.setattr(mounts, "_MOUNTS", listing)
    for use in (create_ledger, open_ledger):
        for directory in (remote, link):
            with pytest.raises(LedgerError, match=r"network file system \(nfs4\).*postgresql://"):
                use(f"sqlite:///{directory}/ledger.db")
    assert list(remote.iterdir()) == []
    create_ledger(f"sqlite:///{tmp_path}/ledger.db").close()


def test_where_mounts_are_not_listed_nothing_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert network_file_system(tmp_path / "ledger.db") is None
    monkeypatch.setattr(mounts, "_MOUNTS", tmp_path / "missing")
    assert network_file_system(tmp_path / "ledger.db") is None
