"""Layout of the stack: folder, ports, passwords, and the variables that a client needs to use it."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from secrets import token_urlsafe

from infra.files.durable_files import write_durably
from infra.files.private_files import read_privately, write_privately

HOST = "127.0.0.1"
"""Address of all servers: the stack listens on loopback only."""

USER = "dreamgym"
"""User name in PostgreSQL, Prefect, MLflow and the object store."""

WORK_POOL = "dreamgym"
BUCKET = "dreamgym"
_PASSWORDS = ("postgres", "prefect", "mlflow", "mlflow_cookies", "s3", "supervisor")


@dataclass(frozen=True)
class Ports:
    """Ports of the servers."""

    prefect: int = 4200
    mlflow: int = 5000
    s3: int = 9000
    postgres: int = 5433


@dataclass(frozen=True)
class Layout:
    """Stack of one home."""

    home: Path
    ports: Ports = field(default_factory=Ports)

    @classmethod
    def of(cls, home: Path, ports: Mapping[str, int] | None = None) -> "Layout":
        """Return the layout of a home's stack and save its ports; changed ports take effect at the next start."""
        file = home.absolute() / "stack" / "ports.json"
        known = json.loads(file.read_text()) if file.exists() else {}
        layout = cls(home, Ports(**{**known, **(ports or {})}))
        file.parent.mkdir(parents=True, exist_ok=True)
        write_durably(file, json.dumps(asdict(layout.ports)).encode())
        return layout

    @property
    def folder(self) -> Path:
        """Folder of all files of the stack."""
        return self.home.absolute() / "stack"

    @property
    def logs(self) -> Path:
        """Folder of the logs, one file per server."""
        return self.folder / "logs"

    @property
    def environment_file(self) -> Path:
        """File of the client variables; every process that uses this home reads it and so uses the stack."""
        return self.folder / "environment"

    @property
    def prefect_url(self) -> str:
        """URL of Prefect's page; the API is below it."""
        return f"http://{HOST}:{self.ports.prefect}"

    @property
    def mlflow_url(self) -> str:
        """URL of MLflow's page and API."""
        return f"http://{HOST}:{self.ports.mlflow}"

    @property
    def s3_url(self) -> str:
        """URL of the object server."""
        return f"http://{HOST}:{self.ports.s3}"

    @cached_property
    def passwords(self) -> Mapping[str, str]:
        """Passwords of the servers, generated on first access and stored in a file of mode 600."""
        path = self.folder / "passwords.json"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_privately(path, json.dumps({name: token_urlsafe(24) for name in _PASSWORDS}, indent=1))
        return json.loads(read_privately(path))

    def database_url(self, driver: str, database: str) -> str:
        """Return the SQLAlchemy URL of a database, password included."""
        return f"postgresql+{driver}://{USER}:{self.passwords['postgres']}@{HOST}:{self.ports.postgres}/{database}"

    def client_environment(self) -> dict[str, str]:
        """Return the variables with which any process uses this stack, passwords included."""
        return {
            "DREAMGYM_HOME": str(self.home.absolute()),
            "DREAMGYM_OBJECT_STORE": f"s3://{BUCKET}/objects",
            "DREAMGYM_REPLAY_STORE": f"s3://{BUCKET}/replay",
            "DREAMGYM_S3_ENDPOINT": self.s3_url,
            "DREAMGYM_S3_ACCESS_KEY": USER,
            "DREAMGYM_S3_SECRET_KEY": self.passwords["s3"],
            "DREAMGYM_TRACKING_URI": self.mlflow_url,
            "MLFLOW_TRACKING_USERNAME": USER,
            "MLFLOW_TRACKING_PASSWORD": self.passwords["mlflow"],
            "PREFECT_API_URL": f"{self.prefect_url}/api",
            "PREFECT_API_AUTH_STRING": f"{USER}:{self.passwords['prefect']}",
            # Retry while a server is away, so that an outage does not end the run.
            "PREFECT_CLIENT_MAX_RETRIES": "8",
            "PREFECT_CLIENT_RETRY_EXTRA_CODES": "500,502,503,504",
            "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30",
            "AWS_DEFAULT_REGION": "us-east-1",
        }
