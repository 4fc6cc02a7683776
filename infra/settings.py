"""Settings: where things run and lie. They never change results; recipes do.

Read from DREAMGYM_* variables; a misspelt one is an error, not a default. A home that has a server stack
(`dreamgym up`) names its servers itself, in a file that variables of the process go before.
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
from schemas.errors import InputError

PREFIX = "DREAMGYM_"
_DEFAULT_HOME = Path("runs")


class Settings(BaseSettings):
    """Where a run keeps its things; everything has an embedded default."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True)

    home: Path = _DEFAULT_HOME
    """Folder of everything embedded: objects, replay store, tracking, Prefect."""
    object_store: str = ""
    """s3://bucket/prefix, or a folder; empty: a folder in home."""
    s3_endpoint: str | None = None
    """Address of an S3-compatible server; empty: AWS."""
    s3_access_key: SecretStr | None = None
    s3_secret_key: SecretStr | None = None
    replay_store: str = ""
    """Folder of the LanceDB tables; empty: a folder in home."""
    tracking_uri: SecretStr = SecretStr("")
    """MLflow tracking address, which may hold a password; empty: SQLite in home."""
    endpoint_url: str = ""
    """OpenAI-compatible endpoint, of whose models recipes may make teacher, experience model and task generator."""
    endpoint_api_key: SecretStr | None = None
    endpoint_concurrency: int = Field(default=8, ge=1)
    """Questions at a time."""
    vllm_python: Path | None = None
    """A Python that can import vLLM; empty: that of an environment which is made in `engines` on first use."""
    vllm_gpu_share: float = Field(default=0.3, gt=0, le=1)
    """Of a GPU's memory, for each of the two servers; the networks that are trained are on it as well."""
    serve_token: SecretStr = SecretStr("")
    """That whoever plays in a served dream must send; empty: only this machine may play, and nobody is asked for one."""
    engines: Path = user_cache_path("dreamgym") / "engines"
    """Folder of the engines' environments, some gigabytes each; all homes share it."""
    device: str = ""
    """Of the networks: cpu, cuda or cuda:1, say; empty: a GPU if there is one."""
    num_ranks: int = Field(default=1, ge=1)
    """Processes that train a network together, its weights sharded over them (FSDP2); with GPUs, one for each."""
    checkpoint_every_s: float = Field(default=600, ge=0)
    """Seconds between two checkpoints of a fine-tuning, at least."""
    ray_address: str = ""
    """Of a Ray cluster that dreams and fits the experience model, such as `10.0.0.1:6379`; empty: this process does."""
    ray_cpus: float = Field(default=1, gt=0)
    """That each call to the cluster takes of a node."""
    ray_gpus: float = Field(default=0, ge=0)
    """The same of its GPUs."""
    num_threads: int = Field(default_factory=lambda: os.cpu_count() or 1, ge=1)
    """Threads of the networks."""
    schedule_timezone: str = "UTC"
    """In which the schedules of deployments are read, such as Europe/Paris."""
    environment_url: str = ""
    """Of the server of an environment that runs elsewhere, such as WebShop's."""
    environment_processes: int = Field(default_factory=lambda: os.cpu_count() or 1, ge=1)
    """That play the games of an environment which needs processes of its own."""

    @field_validator("home", mode="before")
    @classmethod
    def _not_the_folder_one_stands_in(cls, home: Any) -> Any:
        """Which a path of no letters would be."""
        return home or _DEFAULT_HOME

    @property
    def object_store_uri(self) -> str:
        """Where objects lie."""
        return self.object_store or str(self.home.absolute() / "objects")

    @property
    def replay_store_uri(self) -> str:
        """Where the tables lie."""
        return self.replay_store or str(self.home.absolute() / "replay")

    @property
    def tracking(self) -> str:
        """Where MLflow keeps runs."""
        return self.tracking_uri.get_secret_value() or f"sqlite:///{self.home.absolute() / 'mlflow.db'}"

    @property
    def tracking_shown(self) -> str:
        """The same for a person to read, without its password."""
        return re.sub(r"(://[^:/@]*):[^@]*@", r"\1:***@", self.tracking)


@lru_cache
def settings() -> Settings:
    """The settings of this process.

    Raises:
        InputError: a DREAMGYM_ variable that does not exist, or a value that does not fit.
    """
    use_stack(Path(os.environ.get(f"{PREFIX}HOME") or _DEFAULT_HOME))
    known = {f"{PREFIX}{name}".upper() for name in Settings.model_fields}
    strangers = sorted(name for name in os.environ if name.upper().startswith(PREFIX) and name.upper() not in known)
    if strangers:
        raise InputError(f"unknown setting {', '.join(strangers)}: known are {', '.join(sorted(known))}")
    try:
        return Settings()
    except ValueError as error:
        raise InputError(f"settings: {error}") from error


def use_stack(home: Path) -> None:
    """Set the variables of a home's server stack, if it has one; those that are set already stay."""
    file = home / "stack" / "environment"
    if file.exists():
        for line in read_privately(file).splitlines():
            name, _, value = line.partition("=")
            os.environ.setdefault(name, value)
