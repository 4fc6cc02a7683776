"""Model registry: MLflow versions, and aliases that mirror the ledger."""

import time
from collections.abc import Mapping

from mlflow import MlflowClient
from mlflow.entities.model_registry import ModelVersion
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import (
    INVALID_PARAMETER_VALUE,
    RESOURCE_ALREADY_EXISTS,
    RESOURCE_DOES_NOT_EXIST,
    ErrorCode,
)

from infra.promotion.ledger import Ledger
from infra.promotion.policy_artifacts import source_of
from infra.settings import Settings
from schemas.errors import StorageError
from schemas.ledger import History
from schemas.policies import REGISTERED_MODEL as MODEL
from schemas.records import Reference

CHAMPION = "champion"
CHALLENGER = "challenger"
REAL_CANDIDATE = "real_env_candidate"

_MAX_FAILURES, _RETRY_AFTER_S = 5, 0.5
_ALREADY_THERE = ErrorCode.Name(RESOURCE_ALREADY_EXISTS)
_LOADING = "`dreamgym` must be installed, and `DREAMGYM_HOME` or `DREAMGYM_OBJECT_STORE` say where the objects are."
_ABOUT = f"""Language agents trained by DreamGym. `{CHAMPION}` is the policy in force; tags say what a version's gate said.

Load it: `mlflow.transformers.load_model("models:/{MODEL}@{CHAMPION}")`; {_LOADING}
As a Hugging Face folder: `dreamgym export champion DIR`."""
_NOT_THERE = (ErrorCode.Name(RESOURCE_DOES_NOT_EXIST), ErrorCode.Name(INVALID_PARAMETER_VALUE))


class Registry:
    """Versions of the policy. A version points at verified objects and contains no weights itself."""

    def __init__(self, settings: Settings) -> None:
        """Connect to the registry of the configured MLflow."""
        self._client = MlflowClient(settings.tracking)

    def register(self, policy: Reference, tags: Mapping[str, str] | None = None, run_id: str | None = None) -> str:
        """Register a policy and return its version number; registering it again only updates the tags."""
        try:
            self._ensure_model()
            version = self._version_of(policy) or self._new_version(policy, run_id)
            for key, value in (tags or {}).items():
                self._client.set_model_version_tag(MODEL, str(version.version), key, value)
        except MlflowException as error:
            raise StorageError(f"cannot register the policy in MLflow: {error.message}") from error
        return str(version.version)

    def _version_of(self, policy: Reference) -> ModelVersion | None:
        found = self._client.search_model_versions(f"name = '{MODEL}' and tags.sha256 = '{policy.sha256}'")
        return found[0] if found else None

    def _new_version(self, policy: Reference, run_id: str | None) -> ModelVersion:
        tags = {"sha256": policy.sha256, "uri": policy.uri}
        made = self._client.create_model_version(MODEL, source_of(policy), run_id, tags)
        loads = f'`mlflow.transformers.load_model("models:/{MODEL}/{made.version}")`'
        about = f"Weights (safetensors) and tokenizer of a causal language model. Load it: {loads}; {_LOADING}"
        return self._client.update_model_version(MODEL, str(made.version), about)

    def _ensure_model(self) -> None:
        try:
            self._client.create_registered_model(MODEL, description=_ABOUT)
        except MlflowException as error:
            if error.error_code != _ALREADY_THERE:
                raise

    def follow(self, ledger: Ledger) -> None:
        """Point the MLflow aliases at the policies that the ledger names; repeat if the ledger grows meanwhile.

        Raises:
            StorageError: MLflow failed repeatedly. The next call corrects the aliases.
        """
        shown, num_failures = -1, 0
        while shown != len((history := ledger.history()).entries):
            try:
                self._show(history)
                shown = len(history.entries)
            except StorageError:  # MLflow on SQLite can fail under concurrent writes
                num_failures += 1
                if num_failures == _MAX_FAILURES:
                    raise
                time.sleep(_RETRY_AFTER_S)

    def _show(self, history: History) -> None:
        wanted = {
            CHAMPION: history.champion,
            CHALLENGER: history.challenger,
            REAL_CANDIDATE: history.real_env_candidate,
        }
        for alias, policy in wanted.items():
            present = self.behind(alias)
            if policy and (present is None or present.sha256 != policy.sha256):
                self._point(alias, self.register(policy))
            elif present and not policy:
                self._point(alias, None)

    def _point(self, alias: str, version: str | None) -> None:
        """Point an MLflow alias at a version, or delete it."""
        try:
            if version is None:
                self._client.delete_registered_model_alias(MODEL, alias)
            else:
                self._client.set_registered_model_alias(MODEL, alias, version)
        except MlflowException as error:
            raise StorageError(f"cannot point {alias} at version {version} in MLflow: {error.message}") from error

    def behind(self, alias: str) -> Reference | None:
        """Return the policy that an MLflow alias points at; None if the alias does not exist.

        Raises:
            StorageError: MLflow does not answer.
        """
        try:
            version = self._client.get_model_version_by_alias(MODEL, alias)
        except MlflowException as error:
            if error.error_code in _NOT_THERE:
                return None
            raise StorageError(f"cannot ask MLflow for {alias}: {error.message}") from error
        return Reference(version.tags["uri"], version.tags["sha256"], "model", {"version": str(version.version)})
