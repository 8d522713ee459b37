"""Network file systems are told from local ones."""

from pathlib import Path

import pytest

from kubexm.db.filesystems import network_filesystem

MOUNTS = """\
/dev/vda1 / ext4 rw,relatime 0 0
filer:/home /srv/home nfs4 rw 0 0
/dev/vdb1 /srv/home/local ext4 rw 0 0
//filer/x /srv/a\\040b cifs rw 0 0
automount /net autofs rw 0 0
filer:/net /net nfs rw 0 0
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/lib/kubexm", None),
        ("/srv/home/ann/state", "nfs4"),
        ("/srv/homes", None),
        ("/srv/home/local/state", None),
        ("/srv/a b/state", "cifs"),
        ("/net/state", "nfs"),
    ],
)
def test_innermost_and_latest_mount_decides(path: str, kind: str | None, tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(MOUNTS)

    assert network_filesystem(Path(path), mounts) == kind


def test_link_is_followed(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/vda1 / ext4 rw 0 0\nfiler:/x {tmp_path / 'far'} nfs rw 0 0\n")
    (tmp_path / "far").mkdir()
    (tmp_path / "near").symlink_to(tmp_path / "far")

    assert network_filesystem(tmp_path / "near" / "state", mounts) == "nfs"


def test_nothing_is_refused_where_there_is_no_list_of_mounts(tmp_path: Path) -> None:
    assert network_filesystem(tmp_path, tmp_path / "none") is None
