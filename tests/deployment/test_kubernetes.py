"""The Kubernetes manifests: confined pods, probes, and objects that fit each other and their schemas."""

from __future__ import annotations

import shutil
import subprocess
from typing import Any

import pytest
import yaml

from . import files
from .files import manifest, manifests
from .tools import find

pytestmark = pytest.mark.pure
KINDS = {
    "ConfigMap": "v1", "Secret": "v1", "Namespace": "v1", "Service": "v1", "Deployment": "apps/v1", "Job": "batch/v1",
    "Ingress": "networking.k8s.io/v1", "NetworkPolicy": "networking.k8s.io/v1", "PodDisruptionBudget": "policy/v1",
}  # fmt: skip
OLDEST = "1.25"  # the version of Kubernetes whose schema all manifests have to fit, and the newest that the checker has
NEWEST = "1.34"
WORKLOADS = [each for each in manifests() if each["kind"] in ("Deployment", "Job")]
each_workload = pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload["metadata"]["name"])


def pod_of(workload: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = workload["spec"]["template"]["spec"]
    return found


def test_each_object_is_of_a_known_kind_and_has_a_name_of_its_own():
    for each in manifests():
        assert each["apiVersion"] == KINDS[each["kind"]]
    names = [(each["kind"], each["metadata"]["name"]) for each in manifests()]
    assert len(set(names)) == len(names)
    assert {kind for kind, _ in names} == set(KINDS)


@each_workload
def test_each_pod_is_confined_as_its_namespace_asks(workload):
    pod = pod_of(workload)
    (container,) = pod["containers"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert (
        f"{pod['securityContext']['runAsUser']}:{pod['securityContext']['runAsGroup']}"
        == dict(files.stages()[-1])["USER"]
    )
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
    }  # fmt: skip
    assert "memory" in container["resources"]["limits"]
    enforced = manifest("Namespace", "signalbox")["metadata"]["labels"]["pod-security.kubernetes.io/enforce"]
    assert enforced == "restricted"


@each_workload
def test_each_file_that_a_variable_names_is_in_the_secret(workload):
    pod = pod_of(workload)
    (container,) = pod["containers"]
    known = manifest("Secret", "signalbox")["stringData"]
    mounted = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    assert set(mounted) == set(volumes)
    assert volumes["secrets"]["secret"]["secretName"] == manifest("Secret", "signalbox")["metadata"]["name"]
    given = {item["key"]: item["path"] for item in volumes["secrets"]["secret"]["items"]}
    assert given.keys() == set(given.values()) == {row["value"].rpartition("/")[2] for row in container["env"]}
    for row in container["env"]:
        folder, _, name = row["value"].rpartition("/")
        assert folder == mounted["secrets"], row
        assert name in known, row


@each_workload
def test_selectors_find_the_pods(workload):
    labels = workload["spec"]["template"]["metadata"]["labels"]
    if workload["kind"] == "Deployment":
        assert workload["spec"]["selector"]["matchLabels"] == labels
        assert workload["spec"]["replicas"] >= 2
        budget = manifest("PodDisruptionBudget", workload["metadata"]["name"])["spec"]
        assert budget["selector"]["matchLabels"] == labels
        assert budget["minAvailable"] < workload["spec"]["replicas"], "a node could never be drained"
    policy = manifest("NetworkPolicy", workload["metadata"]["name"])["spec"]
    assert policy["podSelector"]["matchLabels"] == labels
    assert policy["policyTypes"] == ["Ingress", "Egress"]


def test_a_liveness_probe_asks_for_the_process_alone_and_readiness_for_everything():
    (container,) = pod_of(manifest("Deployment", "signalbox-web"))["containers"]
    (port,) = container["ports"]
    asked = {name: container[f"{name}Probe"]["httpGet"] for name in ("startup", "liveness", "readiness")}
    assert {get["port"] for get in asked.values()} == {port["name"]}
    assert {name: get["path"] for name, get in asked.items()} == {
        "startup": "/healthz?process", "liveness": "/healthz?process", "readiness": "/readyz",
    }  # fmt: skip
    assert not any("httpHeaders" in get for get in asked.values()), "probes answer whatever the host"


def test_requests_reach_the_site_through_the_service():
    service = manifest("Service", "signalbox-web")["spec"]
    pod = manifest("Deployment", "signalbox-web")["spec"]["template"]
    assert service["selector"] == pod["metadata"]["labels"]
    assert service["ports"][0]["targetPort"] == pod["spec"]["containers"][0]["ports"][0]["name"]
    ingress = manifest("Ingress", "signalbox")["spec"]
    (rule,) = ingress["rules"]
    (path,) = rule["http"]["paths"]
    assert path["backend"]["service"] == {"name": "signalbox-web", "port": {"name": service["ports"][0]["name"]}}
    assert [rule["host"]] == ingress["tls"][0]["hosts"]
    assert rule["host"] == manifest("ConfigMap", "signalbox")["data"]["ALLOWED_HOSTS"]
    (allowed,) = manifest("NetworkPolicy", "signalbox-web")["spec"]["ingress"]
    assert allowed["ports"] == [{"protocol": "TCP", "port": pod["spec"]["containers"][0]["ports"][0]["containerPort"]}]


def test_the_kustomization_has_all_but_the_example_of_the_secret():
    found = yaml.safe_load(files.read("kubernetes/kustomization.yaml"))
    there = {path.name for path in (files.DEPLOY / "kubernetes").iterdir()}
    assert set(found["resources"]) == there - {"kustomization.yaml", "secret.example.yaml"}
    images = {pod_of(workload)["containers"][0]["image"] for workload in WORKLOADS}
    assert images == {image["name"] for image in found["images"]}


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
def test_they_fit_the_schemas_of_kubernetes(version):
    check = find("kubernetes-validate")
    paths = [path for path in sorted((files.DEPLOY / "kubernetes").glob("*.yaml")) if path.stem != "kustomization"]
    command = [check, "--strict", "--kubernetes-version", version, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_kubectl_builds_them():
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("kubectl is not installed here")
    done = subprocess.run(
        [kubectl, "kustomize", str(files.DEPLOY / "kubernetes")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("registry.example.com/signalbox:") == len(WORKLOADS)
