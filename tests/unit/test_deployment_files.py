"""Compose file and deployments: pinned, closed to the outside, without passwords, with settings that exist."""

import asyncio
import importlib
import json
import re
import shutil
import subprocess
from pathlib import Path
from uuid import uuid4

import kubernetes_validate
import pytest
import yaml
from prefect.client.schemas.objects import FlowRun
from prefect.settings import PREFECT_API_URL, temporary_settings

from infra.settings import PREFIX, Settings
from schemas.recipes.recipe import Recipe

INFRA = Path(__file__).parents[2] / "infra"
COMPOSE = yaml.safe_load((INFRA / "compose.yaml").read_text())
DEPLOYMENTS = yaml.safe_load((INFRA / "prefect.yaml").read_text())["deployments"]


def test_images_are_pinned():
    images = {service["image"] for service in COMPOSE["services"].values()}
    assert all(re.fullmatch(r"[\w./-]+:[\w.-]*\d[\w.-]*", image) for image in images), images
    assert re.search(r"^FROM python:\d+\.\d+\.\d+", (INFRA / "Dockerfile").read_text(), re.M)


def test_pages_are_published_on_loopback_only():
    published = [port for service in COMPOSE["services"].values() for port in service.get("ports", ())]
    assert published
    assert all(port.startswith("127.0.0.1:") for port in published)


def test_passwords_come_from_outside_and_have_no_default():
    text = (INFRA / "compose.yaml").read_text()
    for name, value in re.findall(r"^\s*(\w*(?:PASSWORD|SECRET|COOKIE|AUTH_STRING|KEY)\w*): (.+)$", text, re.M):
        assert value == "dreamgym" or "${" in value, name
    assert all(":?" in one for one in re.findall(r"\$\{[^}]+\}", text))


def test_clients_are_told_settings_that_exist():
    told = {name for name in COMPOSE["x-client"] if name.startswith(PREFIX)}
    assert told <= {f"{PREFIX}{name}".upper() for name in Settings.model_fields}


def test_deployments_name_flows_and_parameters_that_exist():
    for deployment in DEPLOYMENTS:
        path, name = deployment["entrypoint"].split(":")
        flow = getattr(importlib.import_module(path.removesuffix(".py").replace("/", ".")), name)
        accepted = set(flow.parameters.properties)
        given = set(deployment["parameters"])
        for trigger in deployment.get("triggers", ()):
            given |= set(trigger["parameters"])
        assert given <= accepted, deployment["name"]
        if "recipe" in deployment["parameters"]:
            Recipe.model_validate(deployment["parameters"]["recipe"])


def has_compose() -> bool:
    docker = shutil.which("docker")
    return (
        bool(docker)
        and subprocess.run([docker, "compose", "version"], capture_output=True, check=False).returncode == 0
    )


@pytest.mark.skipif(
    not has_compose(), reason="docker has no compose plugin here: https://docs.docker.com/compose/install"
)
def test_docker_compose_accepts_the_file():
    names = re.findall(r"\$\{(\w+)", (INFRA / "compose.yaml").read_text())
    command = ["docker", "compose", "-f", INFRA / "compose.yaml", "config", "--quiet"]
    done = subprocess.run(command, env=dict.fromkeys(names, "x" * 12), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


KUBERNETES = INFRA / "kubernetes"
MANIFESTS = [
    document for path in sorted(KUBERNETES.glob("*.yaml")) for document in yaml.safe_load_all(path.read_text())
]


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda one: f"{one['kind']} {one['metadata']['name']}")
def test_kubernetes_knows_every_field(manifest):
    kubernetes_validate.validate(manifest, "1.32", strict=True)


@pytest.fixture(scope="module")
def job():
    """Return the job that a Kubernetes worker creates from our template for a flow run."""
    from prefect_kubernetes.worker import KubernetesWorkerJobConfiguration  # slow: not at each collection of tests

    template = json.loads((KUBERNETES / "job-template.json").read_text())
    with temporary_settings({PREFECT_API_URL: "http://prefect:4200/api"}):
        configuration = asyncio.run(KubernetesWorkerJobConfiguration.from_template_and_values(template, {}))
        configuration.prepare_for_flow_run(FlowRun(flow_id=uuid4(), name="nightly"))
    return configuration.job_manifest


def test_a_flow_run_becomes_a_job_that_kubernetes_knows_every_field_of(job):
    kubernetes_validate.validate(job, "1.32", strict=True)
    container = job["spec"]["template"]["spec"]["containers"][0]
    told = {one["name"]: one for one in container["env"]}
    assert told["PREFECT_API_URL"]["value"] == "http://prefect:4200/api"
    assert told["DREAMGYM_S3_SECRET_KEY"]["valueFrom"]["secretKeyRef"]["name"] == "passwords"
    (worker,) = next(one for one in MANIFESTS if one["kind"] == "Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["image"] == worker["image"]
    assert "prefect flow-run execute" in " ".join(container["args"])


def test_pods_run_without_privileges_and_within_limits(job):
    pods = [one["spec"]["template"]["spec"] for one in (*MANIFESTS, job) if "template" in one.get("spec", {})]
    assert len(pods) == 2
    for pod in pods:
        assert pod["securityContext"]["runAsNonRoot"]
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
            }
            assert container["resources"]["limits"]["memory"]


def test_every_secret_that_pods_need_is_in_the_example():
    text = "".join(path.read_text() for path in (*KUBERNETES.glob("*.yaml"), KUBERNETES / "job-template.json"))
    needed = set(re.findall(r'"?name"?: "?passwords"?, "?key"?: "?(\w+)', text))
    offered = {line.partition("=")[0] for line in (KUBERNETES / "passwords.env.example").read_text().split()}
    assert needed == offered
