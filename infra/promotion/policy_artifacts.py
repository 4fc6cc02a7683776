"""MLflow artifact repository for registered policies; it makes `models:/dreamgym-policy@champion` download and load.

A version's source is `dreamgym-objects:/<sha256>`; an entry point maps this scheme to the class below. The files come
from the object store that this process's settings name, and each is verified. They appear as an MLflow model of the
flavour transformers: all of them under `model/`, the tokenizer's under `components/tokenizer/` as well.

MLflow imports this module whenever it is imported itself, so rarely needed modules are imported late.
"""

import json
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from mlflow.entities import FileInfo
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import INTERNAL_ERROR, RESOURCE_DOES_NOT_EXIST
from mlflow.store.artifact.artifact_repo import ArtifactRepository

from schemas.errors import DreamGymError
from schemas.policies import REGISTERED_MODEL
from schemas.records import Reference

if TYPE_CHECKING:
    from infra.storage.object_store import ObjectStore

SCHEME = "dreamgym-objects"
_METADATA, _MODEL, _TOKENIZER = "MLmodel", "model", "components/tokenizer"
_OPTIMIZER = "optimizer.safetensors"
_CONFIGURATIONS = ("config.json", "generation_config.json", "adapter_config.json")
_TEXT = json.dumps([{"type": "string", "required": True}])
_FLAVORS = {
    "python_function": {"loader_module": "mlflow.transformers"},
    "transformers": {
        "task": "text-generation",
        "instance_type": "TextGenerationPipeline",
        "pipeline_model_type": "AutoModelForCausalLM",
        "model_binary": _MODEL,
        "source_model_name": REGISTERED_MODEL,
        "components": ["tokenizer"],
        "tokenizer_type": "AutoTokenizer",
    },
}


def source_of(policy: Reference) -> str:
    """Return the model version source of a stored policy."""
    return f"{SCHEME}:/{policy.sha256}"


class PolicyArtifacts(ArtifactRepository):
    """Read-only view of a stored policy as an MLflow model."""

    def list_artifacts(self, path: str | None = None) -> list[FileInfo]:
        """List the files and folders directly under a folder of the model; sizes are unknown."""
        folder = PurePosixPath(path or ".")
        inside = (PurePosixPath(name).relative_to(folder) for name in self._names if _is_inside(name, folder))
        is_folder = {one.parts[0]: len(one.parts) > 1 for one in inside}
        return [FileInfo(str(folder / name), is_folder[name], None) for name in sorted(is_folder)]

    def _download_file(self, remote_file_path: str, local_path: str) -> None:
        """Write one verified file.

        Raises:
            MlflowException: the file does not exist, or does not match its digest.
        """
        try:
            Path(local_path).write_bytes(self._read(remote_file_path))
        except DreamGymError as error:
            raise self._unreadable(error) from error

    def _read(self, name: str) -> bytes:
        if name not in self._names:
            raise MlflowException(f"{self.artifact_uri} has no file {name}", error_code=RESOURCE_DOES_NOT_EXIST)
        if name == _METADATA:
            return _metadata(self._policy).encode()
        return self._objects.get_file(self._policy, PurePosixPath(name).name) or b""

    @cached_property
    def _names(self) -> list[str]:
        """Paths of all files of the model."""
        try:
            stored = [name for name in self._objects.get_json(self._policy) if name != _OPTIMIZER]
        except DreamGymError as error:
            raise self._unreadable(error) from error
        of_tokenizer = [name for name in stored if name not in _CONFIGURATIONS and not _is_weights(name)]
        return [_METADATA, *(f"{_MODEL}/{name}" for name in stored), *(f"{_TOKENIZER}/{name}" for name in of_tokenizer)]

    @cached_property
    def _objects(self) -> "ObjectStore":
        from infra.settings import settings
        from infra.storage.blobs import open_blobs
        from infra.storage.object_store import ObjectStore

        return ObjectStore(open_blobs(settings()))

    @property
    def _policy(self) -> Reference:
        return Reference(self.artifact_uri, self.artifact_uri.rpartition("/")[2], "model")

    def _unreadable(self, error: DreamGymError) -> MlflowException:
        message = f"{self.artifact_uri}: {error} DREAMGYM_HOME or DREAMGYM_OBJECT_STORE says where the objects are"
        return MlflowException(message, error_code=INTERNAL_ERROR)

    def log_artifact(self, local_file: str, artifact_path: str | None = None) -> None:
        """Refuse to write.

        Raises:
            MlflowException: always.
        """
        raise MlflowException(f"{self.artifact_uri} is a stored policy, which never changes")

    def log_artifacts(self, local_dir: str, artifact_path: str | None = None) -> None:
        """Refuse to write.

        Raises:
            MlflowException: always.
        """
        self.log_artifact(local_dir, artifact_path)


def _is_inside(name: str, folder: PurePosixPath) -> bool:
    return name != str(folder) and PurePosixPath(name).is_relative_to(folder)


def _is_weights(name: str) -> bool:
    return ".safetensors" in name


def _metadata(policy: Reference) -> str:
    """Return MLflow's description of the model as JSON, which is also valid YAML."""
    signature = {"inputs": _TEXT, "outputs": _TEXT, "params": None}
    return json.dumps({"flavors": _FLAVORS, "model_uuid": policy.sha256[:32], "signature": signature}, indent=1)
