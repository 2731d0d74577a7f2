"""Files for systemd, containers and Kubernetes: they can be parsed, their options exist, and they fit each other."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from detent.cli.main import root
from detent.cli.session import Session
from tests.docs.test_blocks import ROOT

DEPLOY = ROOT / "docs" / "deploy"
PAGES_OF_DOCS = sorted((ROOT / "docs").glob("*.md"))
CONFIGURATION = re.compile(r"^```(yaml|ini|json|toml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
UNITS = sorted(DEPLOY.glob("*.service"))
KEDA = yaml.safe_load((ROOT / "docs/monitoring/keda-scaledobject.yml").read_text(encoding="utf-8"))
MANIFESTS: list[dict[str, Any]] = list(yaml.safe_load_all((DEPLOY / "kubernetes.yml").read_text(encoding="utf-8")))


def named(kind: str, name: str) -> dict[str, Any]:
    return next(one for one in MANIFESTS if (one["kind"], one["metadata"]["name"]) == (kind, name))


def containers() -> list[dict[str, Any]]:
    pods = [one["spec"]["template"]["spec"] for one in MANIFESTS if "template" in one["spec"]]
    return [container for pod in pods for container in pod["containers"]]


def started(unit: Path) -> list[str]:
    """The command that a unit starts, as a reader of `%i` would fill it in."""
    (line,) = re.findall(r"^ExecStart=(.*)$", unit.read_text(encoding="utf-8"), re.MULTILINE)
    return shlex.split(line.replace("%i", "1").replace("%H", "web"))


def of_container() -> list[str]:
    """The default command of the image."""
    text = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
    found = {key: json.loads(value) for key, value in re.findall(r"^(ENTRYPOINT|CMD) (.*)$", text, re.MULTILINE)}
    assert found["ENTRYPOINT"][-1] == "detent"
    return [str(word) for word in found["CMD"]]


COMMANDS = {
    **{unit.name: started(unit)[1:] for unit in UNITS},
    "Containerfile": of_container(),
    **{container["name"]: container["args"] for container in containers()},
}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_command_takes_these_options_and_values(name: str) -> None:
    """click parses the whole line, so an unknown option, a missing value or a wrong type is refused."""
    command: click.Command = root
    context, words = click.Context(root, obj=Session()), list(COMMANDS[name])
    while isinstance(command, click.Group):
        found = command.get_command(context, words[0])
        assert found is not None, words[0]
        command, words = found, words[1:]
    command.make_context(command.name, words, parent=context)


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze on this machine")
def test_systemd_accepts_the_unit(unit: Path, tmp_path: Path) -> None:
    text = unit.read_text(encoding="utf-8").replace("/srv/shop/.venv/bin/detent", sys.executable)
    path = tmp_path / unit.name.replace("@.", "@1.")
    path.write_text(text, encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(path)], capture_output=True, text=True, check=False
    )
    about = [line for line in (done.stdout + done.stderr).splitlines() if "detent" in line]
    assert about == []


def test_a_worker_has_more_time_to_stop_than_its_grace() -> None:
    (unit,) = (unit for unit in UNITS if "worker" in unit.name)
    (stop,) = re.findall(r"^TimeoutStopSec=(\d+)$", unit.read_text(encoding="utf-8"), re.MULTILINE)
    assert int(stop) > grace_of(COMMANDS[unit.name])
    pod = named("Deployment", "worker-mail")["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] > grace_of(COMMANDS["worker"])


def grace_of(words: list[str]) -> int:
    return int(words[words.index("--grace") + 1].removesuffix("s"))


def test_the_manifests_fit_each_other() -> None:
    assert all({"apiVersion", "kind", "metadata", "spec"} <= set(one) for one in MANIFESTS)
    for one in MANIFESTS:
        if one["kind"] == "Deployment":
            assert one["spec"]["selector"]["matchLabels"] == one["spec"]["template"]["metadata"]["labels"]
    server = named("Deployment", "detent-server")["spec"]["template"]
    service = named("Service", "detent-server")["spec"]
    assert service["selector"] == server["metadata"]["labels"]
    assert service["ports"][0]["targetPort"] in {port["name"] for port in server["spec"]["containers"][0]["ports"]}
    scaled_one = named(KEDA["spec"]["scaleTargetRef"].get("kind", "Deployment"), KEDA["spec"]["scaleTargetRef"]["name"])
    assert "replicas" not in scaled_one["spec"]  # KEDA sets it; an apply must not reset it


def test_probes_of_the_server_name_a_host_that_it_knows() -> None:
    """A request under the address of the pod is answered with 421."""
    (server,) = (one for one in containers() if one["name"] == "server")
    for probe in ("livenessProbe", "readinessProbe"):
        assert {"name": "Host", "value": "localhost"} in server[probe]["httpGet"]["httpHeaders"]


def test_the_probe_of_a_worker_is_a_command() -> None:
    (worker,) = (one for one in containers() if one["name"] == "worker")
    *_, line = worker["readinessProbe"]["exec"]["command"]
    assert line == 'detent doctor --worker "$POD_NAME"'
    assert "$(POD_NAME)" in worker["args"]
    assert "liveness" not in " ".join(worker)


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES_OF_DOCS if CONFIGURATION.search(page.read_text("utf-8"))],
    ids=lambda page: page.name,
)
def test_configuration_in_pages_can_be_parsed(page: Path) -> None:
    for language, text in CONFIGURATION.findall(page.read_text(encoding="utf-8")):
        match language:
            case "yaml":
                assert yaml.safe_load(text)
            case "json":
                assert json.loads(text)
            case "toml":
                assert tomllib.loads(text)
            case _:
                parsed = configparser.ConfigParser(interpolation=None)
                parsed.read_string(text)
                assert parsed.sections()
