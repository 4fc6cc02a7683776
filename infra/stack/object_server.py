"""A persistent S3-compatible server of our own: Ceph's gateway on one monitor and one disk file, from the distribution.

Conditional puts hold on buckets without versioning, which is never switched on here. One copy of the data.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from infra.private_files import write_privately
from infra.stack.layout import BUCKET, HOST, USER, Layout
from schemas.errors import DreamGymError, InputError

_BINARIES = ("ceph", "ceph-authtool", "ceph-mon", "ceph-osd", "monmaptool", "radosgw", "radosgw-admin")
_DISK_BYTES = 64 * 2**30
_KEYS = {
    "mon.": ("mon", "allow *"),
    "client.admin": ("mon", "allow *", "osd", "allow *", "mgr", "allow *"),
    "osd.0": ("mon", "allow profile osd", "osd", "allow *"),
    "client.rgw.a": ("mon", "allow rw", "osd", "allow rwx"),
}


def data_folder(layout: Layout) -> Path:
    """Of monitor, disk file and gateway."""
    return layout.folder / "s3"


def check_installed() -> None:
    """Raise InputError unless Ceph's programs are there."""
    if missing := [name for name in _BINARIES if shutil.which(name) is None]:
        raise InputError(
            f"no {', '.join(missing)}: apt-get install --no-install-recommends ceph-mon ceph-osd radosgw, or name an S3 "
            "store of yours with DREAMGYM_OBJECT_STORE=s3://bucket/prefix"
        )


def server_commands(layout: Layout) -> dict[str, list[str]]:
    """Monitor, disk and gateway in the foreground, in the order in which they start."""
    conf = ["--conf", str(_conf(layout)), "-f"]
    return {
        "s3-monitor": ["ceph-mon", "-i", "a", *conf],
        "s3-disk": ["ceph-osd", "-i", "0", *conf],
        "s3": ["radosgw", "-n", "client.rgw.a", *conf],
    }


def ensure_store(layout: Layout) -> None:
    """Make the store if there is none; what an interrupted attempt left is made anew."""
    folder, done = data_folder(layout), data_folder(layout) / "made"
    if done.exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("mon", "osd0", "run", "log", "rgw"):
        (folder / name).mkdir(parents=True)
    folder.chmod(0o700)
    cluster = str(uuid4())
    write_privately(_conf(layout), _configuration(layout, cluster))
    _make_keys(layout)
    _make_monitor(layout, cluster)
    with _running(layout, "s3-monitor"):
        disk = str(uuid4())
        _ceph(layout, "ceph", "osd", "new", disk)
        _ceph(layout, "ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", disk)
        _ceph(layout, "ceph", "osd", "crush", "add", "osd.0", "1.0", "root=default", "host=h")
        with _running(layout, "s3-disk"):
            _make_user(layout)
    done.touch()


def _make_keys(layout: Layout) -> None:
    keyring = str(data_folder(layout) / "keyring")
    for i, (name, capabilities) in enumerate(_KEYS.items()):
        pairs = zip(capabilities[::2], capabilities[1::2], strict=True)
        given = [part for kind, allowed in pairs for part in ("--cap", kind, allowed)]
        _ceph(
            layout, "ceph-authtool", *(["--create-keyring"] if i == 0 else []), keyring, "--gen-key", "-n", name, *given
        )
    Path(keyring).chmod(0o600)


def _make_monitor(layout: Layout, cluster: str) -> None:
    folder = data_folder(layout)
    address, monitors = f"[v1:{HOST}:{layout.ports.s3 + 1}]", str(folder / "monmap")
    _ceph(layout, "monmaptool", "--create", "--fsid", cluster, "--addv", "a", address, monitors)
    _ceph(layout, "ceph-mon", "-i", "a", "--mkfs", "--monmap", monitors, "--keyring", str(folder / "keyring"))


def _make_user(layout: Layout) -> None:
    keys = [f"--access-key={USER}", f"--secret-key={layout.passwords['s3']}"]
    _ceph(
        layout,
        "radosgw-admin",
        "-n",
        "client.admin",
        "user",
        "create",
        f"--uid={USER}",
        f"--display-name={USER}",
        *keys,
    )


def _ceph(layout: Layout, *command: str) -> None:
    """Run one of Ceph's programs on this store.

    Raises:
        DreamGymError: it failed, or did not answer within two minutes; it is named without its arguments.
    """
    environment = {**os.environ, "CEPH_CONF": str(_conf(layout))}
    try:
        done = subprocess.run(  # noqa: S603
            command, env=environment, capture_output=True, text=True, timeout=120, check=False, cwd="/"
        )
    except subprocess.TimeoutExpired as error:
        raise DreamGymError(f"cannot make the S3 store: {command[0]} did not answer; see {layout.logs}") from error
    if done.returncode:
        raise DreamGymError(f"cannot make the S3 store: {command[0]}: {done.stderr.strip()[-500:]}")


@contextmanager
def _running(layout: Layout, name: str) -> Iterator[None]:
    """One of the servers, while the store is made."""
    with (layout.logs / f"{name}.log").open("ab") as log:
        process = subprocess.Popen(server_commands(layout)[name], stdout=log, stderr=log, cwd="/")  # noqa: S603
    try:
        yield
    finally:
        process.terminate()
        process.wait(timeout=60)


def answers(layout: Layout) -> bool:
    """Whether the gateway lets us in; the bucket is made on the way."""
    try:
        _client(layout).create_bucket(Bucket=BUCKET)
    except (BotoCoreError, ClientError):
        return False
    return True


def _client(layout: Layout) -> Any:
    return boto3.client(
        "s3",
        endpoint_url=layout.s3_url,
        aws_access_key_id=USER,
        aws_secret_access_key=layout.passwords["s3"],
        region_name="us-east-1",
        config=Config(retries={"max_attempts": 1}, connect_timeout=2, read_timeout=10),
    )


def _conf(layout: Layout) -> Path:
    return data_folder(layout) / "ceph.conf"


def _configuration(layout: Layout, cluster: str) -> str:
    folder, first = data_folder(layout), layout.ports.s3
    return f"""\
[global]
fsid = {cluster}
mon host = v1:{HOST}:{first + 1}
public addr = {HOST}
cluster addr = {HOST}
ms bind port min = {first + 10}
ms bind port max = {first + 40}
auth cluster required = cephx
auth service required = cephx
auth client required = cephx
auth allow insecure global id reclaim = false
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 8
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
mon allow pool size one = true
mon warn on pool no redundancy = false
mon data avail crit = 1
mon data avail warn = 5
run dir = {folder}/run
admin socket = {folder}/run/$name.asok
log file = {folder}/log/$name.log
keyring = {folder}/keyring
mon data = {folder}/mon
osd data = {folder}/osd0
osd objectstore = bluestore
bluestore block size = {_DISK_BYTES}
osd memory target = 939524096
debug rgw = 0/0
[client.rgw.a]
rgw data = {folder}/rgw
rgw frontends = beast endpoint={HOST}:{first} tcp_nodelay=1
rgw thread pool size = 32
"""
