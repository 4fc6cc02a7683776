"""Persistent S3-compatible server: SeaweedFS, all its parts in one process. It stores one copy of the data.

Its parts trust holders of a key pair and tokens that are generated at each start; clients can use only the gateway.
"""

import json
import sys
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from secrets import token_urlsafe
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from infra.files.private_files import write_privately
from infra.stack.layout import BUCKET, HOST, USER, Layout
from schemas.errors import InputError

MEMORY = {"GOMEMLIMIT": "300MiB"}
"""Memory limit of the server; without it a gigabyte stays allocated after a model of 600 MB."""

_WEED = Path(sys.executable).with_name("weed")
_PORT_OPTIONS = [f"{part}.port{kind}" for part in ("s3", "master", "volume", "filer") for kind in ("", ".grpc")]
_TOKENS = ("jwt.signing", "jwt.signing.read", "jwt.filer_signing", "jwt.filer_signing.read")
_PARTS = ("master", "volume", "filer", "s3", "client")


def ports(layout: Layout) -> range:
    """Return the ports of the gateway and, above it, of the parts behind it."""
    return range(layout.ports.s3, layout.ports.s3 + len(_PORT_OPTIONS))


def check_installed() -> None:
    """Raise InputError unless SeaweedFS is installed."""
    if not _WEED.exists():
        raise InputError(
            "SeaweedFS is not installed: pip install 'dreamgym[server]', or name an S3 store of yours with "
            "DREAMGYM_OBJECT_STORE=s3://bucket/prefix"
        )


def server_command(layout: Layout) -> list[str]:
    """Return the command that runs the server in the foreground, on loopback."""
    folder = _folder(layout)
    options = {
        "dir": folder / "data",
        "ip": HOST,
        "s3": "true",
        "s3.config": folder / "users.json",
        "filer": "true",
        **dict(zip(_PORT_OPTIONS, ports(layout), strict=True)),
        # Turn off unused protocols, and pages without a password.
        "s3.port.iceberg": 0,
        "s3.port.lance": 0,
        "disableHttp": "true",
        "filer.disableHttp": "true",
        "master.telemetry": "false",
        # Otherwise the master, which has no peers, waits for their votes.
        "master.electionTimeout": "1s",
        "master.volumeSizeLimitMB": 1024,
        "volume.max": 0,
    }
    given = [f"-{name}={value}" for name, value in options.items()]
    return [str(_WEED), "-logtostderr", f"-config_dir={folder}", "server", *given]


def write_configuration(layout: Layout) -> None:
    """Write the users and the key pair and tokens of the server's parts, in a folder that only we can enter."""
    folder = _folder(layout)
    (folder / "data").mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    keys = {"accessKey": USER, "secretKey": layout.passwords["s3"]}
    users = {"identities": [{"name": USER, "credentials": [keys], "actions": ["Admin"]}]}
    write_privately(folder / "users.json", json.dumps(users))
    certificate, key = _key_pair()
    write_privately(folder / "certificate.pem", certificate)
    write_privately(folder / "key.pem", key)
    write_privately(folder / "security.toml", _security(folder))


def _security(folder: Path) -> str:
    pair = {"cert": f"{folder}/certificate.pem", "key": f"{folder}/key.pem"}
    sections = {
        **{name: {"key": token_urlsafe(24)} for name in _TOKENS},
        "grpc": {"ca": pair["cert"]},
        **{f"grpc.{part}": pair for part in _PARTS},
    }
    return "".join(
        f"[{section}]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in values.items())
        for section, values in sections.items()
    )


def _key_pair() -> tuple[str, str]:
    """Return a self-signed certificate and its key, both as PEM."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, USER)])
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=36500))
    certificate = builder.add_extension(x509.BasicConstraints(True, 0), critical=True).sign(key, hashes.SHA256())
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain)
    return certificate.public_bytes(pem).decode(), private.decode()


def answers(layout: Layout) -> bool:
    """Return True if the server stores an object; the write also creates the bucket."""
    client, at = _client(layout.s3_url, layout.passwords["s3"]), {"Bucket": BUCKET, "Key": "healthy"}
    try:
        client.put_object(**at)
        client.delete_object(**at)
    except (BotoCoreError, ClientError):
        return False
    return True


@lru_cache
def _client(address: str, secret: str) -> Any:
    return boto3.client(
        "s3",
        endpoint_url=address,
        aws_access_key_id=USER,
        aws_secret_access_key=secret,
        region_name="us-east-1",
        config=Config(connect_timeout=2, read_timeout=5, retries={"total_max_attempts": 1}),
    )


def _folder(layout: Layout) -> Path:
    return layout.folder / "s3"
