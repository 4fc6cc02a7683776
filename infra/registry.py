"""The model registry: MLflow versions, and aliases that are a view of the ledger and put right by it."""

from collections.abc import Mapping

from mlflow import MlflowClient
from mlflow.entities.model_registry import ModelVersion
from mlflow.exceptions import MlflowException

from infra.ledger import Ledger
from infra.settings import Settings
from schemas.errors import StorageError
from schemas.ledger import History
from schemas.records import Reference

MODEL = "dreamgym-policy"
CHAMPION = "champion"
CHALLENGER = "challenger"
REAL_CANDIDATE = "real_env_candidate"


class Registry:
    """Versions of the policy; a version points at verified objects, it holds no weights itself."""

    def __init__(self, settings: Settings) -> None:
        """The registry where tracking is."""
        self._client = MlflowClient(settings.tracking)

    def register(self, policy: Reference, tags: Mapping[str, str] | None = None, run_id: str | None = None) -> str:
        """A version for a policy; the same policy twice is one version, with the latest tags. Returns its number."""
        try:
            self._ensure_model()
            version = self._version_of(policy) or self._client.create_model_version(
                MODEL,
                source=f"dreamgym-objects:/{policy.sha256}",
                run_id=run_id,
                tags={"sha256": policy.sha256, "uri": policy.uri},
            )
            for key, value in (tags or {}).items():
                self._client.set_model_version_tag(MODEL, str(version.version), key, value)
        except MlflowException as error:
            raise StorageError(f"cannot register the policy in MLflow: {error.message}") from error
        return str(version.version)

    def _version_of(self, policy: Reference) -> ModelVersion | None:
        found = self._client.search_model_versions(f"name = '{MODEL}' and tags.sha256 = '{policy.sha256}'")
        return found[0] if found else None

    def _ensure_model(self) -> None:
        try:
            self._client.get_registered_model(MODEL)
        except MlflowException:
            self._client.create_registered_model(MODEL, description="Policies trained by DreamGym cycles")

    def follow(self, ledger: Ledger) -> None:
        """Let the aliases say what the ledger says; look again until nobody has written to it meanwhile."""
        shown = -1
        while shown != len((history := ledger.history()).entries):
            self._show(history)
            shown = len(history.entries)

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
                self._client.delete_registered_model_alias(MODEL, alias)

    def _point(self, alias: str, version: str) -> None:
        try:
            self._client.set_registered_model_alias(MODEL, alias, version)
        except MlflowException as error:
            raise StorageError(f"cannot point {alias} at version {version} in MLflow: {error.message}") from error

    def behind(self, alias: str) -> Reference | None:
        """The policy that an alias points at; None if it points nowhere."""
        try:
            version = self._client.get_model_version_by_alias(MODEL, alias)
        except MlflowException:
            return None
        return Reference(version.tags["uri"], version.tags["sha256"], "model", {"version": str(version.version)})
