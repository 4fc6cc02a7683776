"""Settings: locations and resources. They never change results; recipes do.

Settings are read from DREAMGYM_* variables; an unknown variable is an error. If the home has a server stack
(`dreamgym up`), its file sets the servers; variables of the process take precedence.
"""

import os
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path
from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from infra.files.private_files import read_privately
from infra.surroundings import use_proxies_as_clients_can
from schemas.errors import InputError

PREFIX = "DREAMGYM_"
_DEFAULT_HOME = Path("runs")


class Settings(BaseSettings):
    """Locations and resources of a run; everything has an embedded default."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True)

    home: Path = _DEFAULT_HOME
    """Folder of all embedded stores: objects, replay store, tracking, Prefect."""
    object_store: str = ""
    """URI s3://bucket/prefix, or a folder; empty: a folder in home."""
    s3_endpoint: str | None = None
    """Address of an S3-compatible server; empty: AWS."""
    s3_access_key: SecretStr | None = None
    s3_secret_key: SecretStr | None = None
    replay_store: str = ""
    """Folder or s3:// URI of the LanceDB tables; empty: a folder in home."""
    tracking_uri: SecretStr = SecretStr("")
    """MLflow tracking address, which may hold a password; empty: SQLite in home."""
    endpoint_url: str = ""
    """OpenAI-compatible endpoint, whose models a recipe may use as teacher, experience model and task generator."""
    endpoint_api_key: SecretStr | None = None
    endpoint_concurrency: int = Field(default=8, ge=1)
    """Maximum number of concurrent requests to the endpoint."""
    endpoint_answer_within_s: float = Field(default=300, gt=0)
    """Seconds within which the endpoint answers a request; a slow model that thinks needs minutes."""
    vllm_python: Path | None = None
    """Python that can import vLLM; empty: that of an environment in `engines`, created on first use."""
    vllm_gpu_share: float = Field(default=0.3, gt=0, le=1)
    """Share of a GPU's memory for each of the two vLLM servers; the trained networks use the same GPU."""
    serve_token: SecretStr = SecretStr("")
    """Token that clients of a served experience model must send; empty: no token, and only this machine may connect."""
    engines: Path = user_cache_path("dreamgym") / "engines"
    """Folder of the engines' environments, shared by all homes; each has some gigabytes."""
    device: str = ""
    """Device of the networks, such as cpu, cuda or cuda:1; empty: a GPU if there is one."""
    num_ranks: int = Field(default=1, ge=1)
    """Number of processes that train a network together with sharded weights (FSDP2); with GPUs, one per GPU."""
    checkpoint_every_s: float = Field(default=600, ge=0)
    """Minimum number of seconds between two checkpoints of a fine-tuning."""
    ray_address: str = ""
    """Address of a Ray cluster that dreams and fits the experience model, such as `10.0.0.1:6379`; empty: local."""
    ray_cpus: float = Field(default=1, gt=0)
    """Number of CPUs of a node that each call to the cluster takes."""
    ray_gpus: float = Field(default=0, ge=0)
    """Number of GPUs of a node that each call to the cluster takes."""
    num_threads: int = Field(default_factory=lambda: os.cpu_count() or 1, ge=1)
    """Number of threads of the networks."""
    schedule_timezone: str = "UTC"
    """Time zone of the deployments' schedules, such as Europe/Paris."""
    environment_url: str = ""
    """Address of the server of a remote environment, such as WebShop's."""
    environment_processes: int = Field(default_factory=lambda: os.cpu_count() or 1, ge=1)
    """Number of processes that play the games of an environment which needs its own processes."""

    @field_validator("home", mode="before")
    @classmethod
    def _not_the_folder_one_stands_in(cls, home: Any) -> Any:
        """Replace an empty path, which would be the current folder, with the default."""
        return home or _DEFAULT_HOME

    @property
    def object_store_uri(self) -> str:
        """Bucket URI or folder of the object store."""
        return self.object_store or str(self.home.absolute() / "objects")

    @property
    def replay_store_uri(self) -> str:
        """Bucket URI or folder of the LanceDB tables."""
        return self.replay_store or str(self.home.absolute() / "replay")

    @property
    def tracking(self) -> str:
        """MLflow tracking address, which may hold a password."""
        return self.tracking_uri.get_secret_value() or f"sqlite:///{self.home.absolute() / 'mlflow.db'}"

    @property
    def tracking_shown(self) -> str:
        """MLflow tracking address without its password, for display."""
        return re.sub(r"(://[^:/@]*):[^@]*@", r"\1:***@", self.tracking)


@lru_cache
def settings() -> Settings:
    """Return the settings of this process.

    Raises:
        InputError: a DREAMGYM_ variable does not exist, or has an invalid value.
    """
    use_proxies_as_clients_can()
    use_stack(Path(os.environ.get(f"{PREFIX}HOME") or _DEFAULT_HOME))
    known = {f"{PREFIX}{name}".upper() for name in Settings.model_fields}
    strangers = sorted(name for name in os.environ if name.upper().startswith(PREFIX) and name.upper() not in known)
    if strangers:
        raise InputError(f"unknown setting {', '.join(strangers)}: known are {', '.join(sorted(known))}")
    try:
        found = Settings()
    except ValueError as error:
        raise InputError(f"settings: {error}") from error
    _require_plain_path(found.home.absolute())
    return found


def _require_plain_path(home: Path) -> None:
    """Refuse a home whose databases would be elsewhere: an address of SQLite ends at a question mark."""
    if "?" in str(home):
        raise InputError(
            f"DREAMGYM_HOME {home} has a question mark in its path, which databases cannot have: rename it"
        )


def use_stack(home: Path) -> None:
    """Set the variables of a home's server stack, if it has one; variables that are already set stay unchanged."""
    file = home / "stack" / "environment"
    if file.exists():
        for line in read_privately(file).splitlines():
            name, _, value = line.partition("=")
            os.environ.setdefault(name, value)
