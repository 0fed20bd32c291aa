"""The alert rules and the dashboard: real programs load them, and each metric that they name is one of ``/metrics``."""

from __future__ import annotations

import json
import re
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest
import yaml
from django.test import Client

from dashboard.serving.metrics.families import list_families, list_series
from machines.conf.server import GuardedProcess
from machines.conf.server.cluster import free_ports
from tests.configuration import configure
from tests.installation.processes import eventually

from . import files
from .tools import find

ALERTS, BOARD = "prometheus/alerts.yaml", "grafana/signalbox.json"
RULES: list[dict[str, Any]] = yaml.safe_load(files.read(ALERTS))["groups"][0]["rules"]
PANELS: list[dict[str, Any]] = json.loads(files.read(BOARD))["panels"]
VARIABLES = {"$machine": ".*", "$__rate_interval": "5m"}
ERRAND = {
    "id": "errand",
    "initial": "Idle",
    "states": {"Idle": {"on": {"start": "Busy"}}, "Busy": {"invoke": {"src": "work", "onDone": "Idle"}}},
}


def list_expressions() -> list[str]:
    found = [target["expr"] for panel in PANELS for target in panel["targets"]]
    for name, value in VARIABLES.items():
        found = [each.replace(name, value) for each in found]
    return found + [rule["expr"] for rule in RULES]


@pytest.mark.pure
def test_each_metric_that_they_name_is_exported():
    exported = {name for family in list_families() for name in list_series(family)}
    for expression in list_expressions():
        named = set(re.findall(r"\bsignalbox_\w+", expression))
        assert named, expression
        assert named <= exported, expression
        assert "$" not in expression


@pytest.mark.pure
def test_the_dashboard_is_one_that_can_be_imported():
    board = json.loads(files.read(BOARD))
    assert {variable["name"] for variable in board["templating"]["list"]} == {"source", "machine"}
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in PANELS]
    assert len(set(places)) == len(PANELS) == len({panel["id"] for panel in PANELS})
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in PANELS)


@pytest.mark.pure
def test_alerts_fire_when_they_should_and_not_before(tmp_path):
    """Prometheus's own test of rules, on a time that is made up."""
    case = {
        "rule_files": [str(files.DEPLOY / ALERTS)],
        "tests": [
            {
                "interval": "1m",
                "input_series": [
                    {"series": "signalbox_up", "values": "1x5 0x10"},
                    {"series": 'signalbox_workers{status="working"}', "values": "2x15"},
                    {"series": 'signalbox_jobs{machine="m",queue="q",place="dead"}', "values": "0x9 3x6"},
                ],
                "alert_rule_test": [
                    {"eval_time": "5m", "alertname": "SignalboxDown"},
                    {"eval_time": "8m", "alertname": "SignalboxDown", "exp_alerts": [
                        {"exp_labels": {"severity": "critical"}, "exp_annotations": RULES[0]["annotations"]}]},
                    {"eval_time": "9m", "alertname": "SignalboxDeadJobs"},
                    {"eval_time": "11m", "alertname": "SignalboxDeadJobs", "exp_alerts": [
                        {"exp_labels": {"severity": "warning", "machine": "m", "queue": "q"},
                         "exp_annotations": {"summary": "3 dead jobs of m in q"}}]},
                    {"eval_time": "11m", "alertname": "SignalboxNoWorker"},
                ],
            }
        ],
    }  # fmt: skip
    (tmp_path / "case.yaml").write_text(yaml.safe_dump(case), encoding="utf-8")
    done = subprocess.run(
        [find("promtool"), "test", "rules", "case.yaml"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def scraped(settings, prefix, engine, db):
    """A loopback server with what ``/metrics`` answers for a machine with a job."""
    configure(settings, METRICS="open")
    engine.publish(ERRAND)
    engine.create("errand", "one")
    engine.fire("errand", "one", "start")
    answer = Client().get("/metrics")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", answer["Content-Type"])
            self.end_headers()
            self.wfile.write(answer.content)

        def log_message(self, *words: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


@pytest.mark.redis
def test_prometheus_loads_the_rules_and_answers_each_panel(scraped, tmp_path):
    (port,) = free_ports(1)
    configuration = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(files.DEPLOY / ALERTS)],
        "scrape_configs": [{"job_name": "signalbox", "static_configs": [{"targets": [f"127.0.0.1:{scraped}"]}]}],
    }
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(configuration), encoding="utf-8")
    command = [find("prometheus"), f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/data"]
    with (tmp_path / "log").open("wb") as log:
        process = GuardedProcess([*command, f"--web.listen-address=127.0.0.1:{port}"], output=log)
    try:
        api = httpx.Client(base_url=f"http://127.0.0.1:{port}/api/v1", timeout=60, trust_env=False)

        def ask(expression: str) -> Any:
            try:
                answer = api.get("/query", params={"query": expression})
            except httpx.HTTPError:
                return {}
            return answer.json() if answer.status_code != 503 else {}  # it is not ready yet

        def has_instances() -> bool:
            return bool(ask('signalbox_instances{machine="errand",state="Busy"} == 1').get("data", {}).get("result"))

        eventually(has_instances, "Prometheus has scraped the machine")
        for expression in list_expressions():
            assert ask(expression)["status"] == "success", expression
        rules = api.get("/rules").json()["data"]["groups"][0]["rules"]
        assert [rule["name"] for rule in rules] == [rule["alert"] for rule in RULES]

        def are_evaluated() -> bool:
            now = api.get("/rules").json()["data"]["groups"][0]["rules"]
            return all(rule["health"] == "ok" for rule in now)

        eventually(are_evaluated, "each rule is evaluated without an error")
        api.close()
    finally:
        process.stop()
