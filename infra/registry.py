"""The model registry: MLflow versions with aliases, each with the gate's report attached."""

from collections.abc import Mapping

from mlflow import MlflowClient
from mlflow.exceptions import MlflowException

from infra.settings import Settings
from schemas.errors import StorageError
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

    def register(self, policy: Reference, run_id: str, tags: Mapping[str, str]) -> str:
        """A new version for a policy; the same policy twice is one version, with the latest tags. Returns its number."""
        try:
            self._ensure_model()
            for version in self._client.search_model_versions(f"name = '{MODEL}'"):
                if version.tags.get("sha256") == policy.sha256:
                    for key, value in tags.items():
                        self._client.set_model_version_tag(MODEL, str(version.version), key, value)
                    return str(version.version)
            made = self._client.create_model_version(
                MODEL,
                source=f"dreamgym-objects:/{policy.sha256}",
                run_id=run_id,
                tags={"sha256": policy.sha256, "uri": policy.uri, **tags},
            )
        except MlflowException as error:
            raise StorageError(f"cannot register the policy in MLflow: {error.message}") from error
        return str(made.version)

    def _ensure_model(self) -> None:
        try:
            self._client.get_registered_model(MODEL)
        except MlflowException:
            self._client.create_registered_model(MODEL, description="Policies trained by DreamGym cycles")

    def point(self, alias: str, version: str) -> None:
        """Let an alias point at a version."""
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
