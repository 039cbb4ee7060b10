"""The parts of ci/deployment that are more than a call of a tool.

  queries              prints the dashboard's queries as recording rules, for promtool
  alerts               each alert fires in a test, and doesn't in another
  compose              what services of the compose file refer to is there
  kubernetes FILE...   manifests fit the schemas of several releases, and each other
"""

import json
import re
import sys
import tomllib
from pathlib import Path

import kubernetes_validate
import yaml

DEPLOY = Path(__file__).resolve().parent.parent / "deploy"
# The oldest release that manifests are for, and the newest whose schema is at hand.
KUBERNETES = ["1.30", "1.37"]


def fail_with(faults):
    for fault in faults:
        print(fault, file=sys.stderr)
    sys.exit(1 if faults else 0)


def all_documents(path):
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


def panels(dashboard):
    for panel in dashboard["panels"]:
        yield panel
        yield from panels({"panels": panel.get("panels", [])})


def queries():
    dashboard = json.loads((DEPLOY / "grafana/vitrine.json").read_text())
    faults, rules, taken = [], [], {}
    for panel in panels(dashboard):
        place, title = panel["gridPos"], panel["title"]
        if panel["id"] in taken.values():
            faults.append(f"{title}: its id is another panel's")
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                if (x, y) in taken or x >= 24:
                    faults.append(f"{title}: it lies on another panel or beyond the edge")
                taken[x, y] = panel["id"]
        if panel["type"] != "row" and not panel.get("targets"):
            faults.append(f"{title}: it asks nothing")
        rules += [target["expr"] for target in panel.get("targets", [])]
    rules += [annotation["expr"] for annotation in dashboard["annotations"]["list"]]
    rules = [rule.replace("$__rate_interval", "5m") for rule in rules]
    # Two panels may show the same; two rules may not.
    named = [{"record": f"dashboard:{number}", "expr": rule} for number, rule in enumerate(rules)]
    print(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": named}]}))
    fail_with(sorted(set(faults)))


def alerts():
    groups = yaml.safe_load((DEPLOY / "prometheus/vitrine.rules.yaml").read_text())["groups"]
    rules = {rule["alert"]: rule for group in groups for rule in group["rules"]}
    tests = yaml.safe_load((DEPLOY / "prometheus/vitrine.test.yaml").read_text())["tests"]
    outcomes = {name: set() for name in rules}
    for test in tests:
        for case in test["alert_rule_test"]:
            outcomes[case["alertname"]].add(bool(case["exp_alerts"]))
    faults = [f"{name}: no test in which it fires" for name in rules if True not in outcomes[name]]
    faults += [f"{name}: no test in which it doesn't" for name in rules if False not in outcomes[name]]
    for name, rule in rules.items():
        if rule["labels"].get("severity") not in ("critical", "warning"):
            faults.append(f"{name}: its severity is neither critical nor warning")
    fail_with(faults)


def compose():
    path = DEPLOY / "compose/compose.yaml"
    file = yaml.safe_load(path.read_text())
    faults = []
    for name, service in file["services"].items():
        used = {
            "services": list(service.get("depends_on", [])),
            "networks": service.get("networks", []),
            "secrets": service.get("secrets", []),
            "configs": [config["source"] for config in service.get("configs", [])],
            "volumes": [volume.split(":")[0] for volume in service.get("volumes", [])],
        }
        for kind, names in used.items():
            there = file.get(kind, {})
            faults += [f"{name}: {kind} has no {one}" for one in names if one not in there]
        for other, how in service.get("depends_on", {}).items():
            if how["condition"] == "service_healthy" and "healthcheck" not in file["services"][other]:
                faults.append(f"{name}: waits for {other} to be healthy, which isn't checked")
        if "healthcheck" not in service:
            faults.append(f"{name}: its health isn't checked")
        for variable, value in service.get("environment", {}).items():
            secret = Path(value).name
            if variable.endswith("_FILE") and secret not in service["secrets"]:
                faults.append(f"{name}: {variable} names {secret}, which is none of its secrets")
    faults += [
        f"configs: there is no {config['file']}"
        for config in file["configs"].values()
        if not (path.parent / config["file"]).exists()
    ]
    fail_with(faults)


def seconds(span):
    number, unit = re.fullmatch(r"(\d+)(s|m)", span).groups()
    return int(number) * {"s": 1, "m": 60}[unit]


def pod_of(document):
    return document["spec"].get("template")


def pod_faults(place, pod):
    spec = pod["spec"]
    volumes = {volume["name"] for volume in spec["volumes"]}
    # The restricted profile of the pod security standards, and what it leaves open.
    if not spec["securityContext"].get("runAsNonRoot") or spec["securityContext"]["runAsUser"] < 1000:
        yield f"{place}: it may run as root"
    if spec["securityContext"].get("seccompProfile", {}).get("type") != "RuntimeDefault":
        yield f"{place}: no seccomp profile"
    if spec.get("automountServiceAccountToken") is not False:
        yield f"{place}: it has a token of the cluster"
    if spec.get("enableServiceLinks") is not False:
        yield f"{place}: names of services become variables that begin like the program's"
    for container in spec["containers"]:
        context = container["securityContext"]
        if context.get("allowPrivilegeEscalation") is not False or context["capabilities"] != {"drop": ["ALL"]}:
            yield f"{place}: {container['name']} may gain rights"
        if context.get("readOnlyRootFilesystem") is not True:
            yield f"{place}: {container['name']} may write into its image"
        if "memory" not in container["resources"].get("limits", {}) or "cpu" not in container["resources"]["requests"]:
            yield f"{place}: {container['name']} doesn't say what it needs"
        for mount in container["volumeMounts"]:
            if mount["name"] not in volumes:
                yield f"{place}: {container['name']} mounts {mount['name']}, which isn't there"
        mounts = [mount["mountPath"] for mount in container["volumeMounts"]]
        for variable in container.get("env", []):
            value = variable.get("value", "")
            if value.startswith("/") and not any(value.startswith(mount) for mount in mounts):
                yield f"{place}: {variable['name']} names {value}, where nothing is mounted"


def served_faults(documents):
    """What the parts of the fleet say of each other."""
    # Beside the fleet there are jobs, which are of other names.
    by_kind = {document["kind"]: document for document in documents if document["metadata"].get("name") == "vitrine"}
    fleet = by_kind["Deployment"]["spec"]
    labels = fleet["template"]["metadata"]["labels"]
    container = fleet["template"]["spec"]["containers"][0]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    settings = tomllib.loads((DEPLOY / "kubernetes/vitrine.toml").read_text())
    for name, setting in (("http", "listen"), ("admin", "admin_listen")):
        if not settings[setting].endswith(f":{ports[name]}"):
            yield f"{setting} isn't the container's port {name}"
    drain = seconds(settings["drain_delay"]) + seconds(settings["drain_timeout"])
    if fleet["template"]["spec"]["terminationGracePeriodSeconds"] <= drain:
        yield "pods are killed before they have drained"
    for kind in ("Service", "PodDisruptionBudget", "NetworkPolicy"):
        spec = next(one for one in documents if one["kind"] == kind and one["metadata"]["name"] == "vitrine")["spec"]
        selector = spec.get("podSelector", spec.get("selector"))
        if selector.get("matchLabels", selector) != labels:
            yield f"{kind} selects other pods"
    named = [port["targetPort"] for port in by_kind["Service"]["spec"]["ports"]]
    named += [container[probe]["httpGet"]["port"] for probe in ("readinessProbe", "livenessProbe")]
    yield from (f"there is no port {name}" for name in named if name not in ports)
    target = by_kind["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]
    if (target["kind"], target["name"]) != ("Deployment", by_kind["Deployment"]["metadata"]["name"]):
        yield "the autoscaler scales something else"


def kubernetes(paths):
    documents = [document for path in paths for document in all_documents(Path(path))]
    faults = []
    for document in documents:
        place = f"{document['kind']} {document['metadata'].get('name', '(generated)')}"
        for release in KUBERNETES:
            try:
                kubernetes_validate.validate(document, release, strict=True)
            except kubernetes_validate.ValidationError as error:
                faults.append(f"{place}: Kubernetes {release}: {error.message}")
        if "spec" in document and (pod := pod_of(document)):
            faults += pod_faults(place, pod)
    faults += served_faults(documents)
    print(f"{len(documents)} manifests fit Kubernetes {' and '.join(KUBERNETES)}" if not faults else "")
    fail_with(faults)


if __name__ == "__main__":
    command, arguments = sys.argv[1], sys.argv[2:]
    {"queries": queries, "alerts": alerts, "compose": compose, "kubernetes": lambda: kubernetes(arguments)}[command]()
