"""Each extra, in an empty virtual environment: it brings what its feature needs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from release.dist import PUBLISHED
from tests.deadlines import scaled
from tests.packaging.installed import ROOT, Installed, in_environment
from tests.packaging.test_versions import PROJECT
from tests.typing.test_typing import GOOD, HEAD

URL = "sqlite:///shop.db"
FOR_DEVELOPERS = {"dev", "release"}
SERVED = """
import os, signal, threading, urllib.request
from detent import Detent
from detent.http.server import Server

def look(url):
    try:
        for path in ("/", "/api/v1/openapi.json", "/metrics"):
            asked = urllib.request.Request(url + path, headers={"Accept": "text/html"})
            with urllib.request.urlopen(asked) as answer:
                print(path, answer.status, b'type="module"' in answer.read(), flush=True)
    finally:
        os.kill(os.getpid(), signal.SIGTERM)

with Detent("sqlite:///shop.db") as app:
    Server(app, host="127.0.0.1", port=0).run(ready=lambda url: threading.Thread(target=look, args=[url]).start())
"""
TRACED = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from shop import add, app

trace.set_tracer_provider(TracerProvider())
with trace.get_tracer("shop").start_as_current_span("order") as span:
    job = add.enqueue(a=1, b=2)
print(job.id, format(span.get_span_context().trace_id, "032x"))
"""
pytestmark = pytest.mark.timeout(scaled(600))


def postgres(found: Installed, url: str) -> None:
    found.run("-m", "detent.cli", "migrate", "--database", url)
    assert found.detent("enqueue", "shop.add", '{"a": 1, "b": 2}', "--app", "shop:app", "--database", url).code == 0
    assert found.detent("worker", "shop:app", "--drain", "--database", url).code == 0
    assert "succeeded" in found.detent("jobs", "list", "--database", url).out


def server(found: Installed, _url: str) -> None:
    assert found.detent("migrate", "--database", URL).code == 0
    ended = found.run("-c", SERVED)
    assert ended.out.splitlines() == ["/ 200 True", "/api/v1/openapi.json 200 False", "/metrics 200 False"], ended.err


def metrics(found: Installed, _url: str) -> None:
    drained = found.detent("worker", "shop:app", "--drain", "--database", URL, "--metrics-port", "0")
    assert drained.code == 0, drained.err
    assert "/metrics" in drained.out + drained.err


def otel(found: Installed, _url: str) -> None:
    install(found, "opentelemetry-sdk")  # the provider is the program's choice
    assert found.detent("migrate", "--database", URL).code == 0
    ended = found.run("-c", TRACED, DETENT_DATABASE_URL=URL)
    assert ended.code == 0, ended.err
    job, trace = ended.out.split()
    assert trace in found.detent("jobs", "get", job, "--json", "--database", URL).out


def django(found: Installed, _url: str) -> None:
    shop = found.directory / "django_shop"
    shutil.copytree(
        ROOT / "examples" / "django_shop", shop, ignore=shutil.ignore_patterns("__pycache__", "*.sqlite3*", "*.db*")
    )
    for command in (("migrate",), ("detent", "verify")):
        ended = found.run(str(shop / "manage.py"), *command)
        assert ended.code == 0, ended.err


PROOFS: dict[str, Callable[[Installed, str], None]] = {
    "postgres": postgres,
    "server": server,
    "metrics": metrics,
    "otel": otel,
    "django": django,
}


def install(found: Installed, package: str) -> None:
    command = [*found.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", package]
    subprocess.run(command, check=True, timeout=scaled(300))


def test_every_extra_has_its_proof_and_is_in_the_bill_of_materials() -> None:
    extras = set(PROJECT["optional-dependencies"]) - FOR_DEVELOPERS
    assert set(PROOFS) == extras
    assert set(PUBLISHED) == extras


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize("extra", PROOFS)
def test_the_extra_is_enough(extra: str, wheel: Path, tmp_path: Path, postgres_url: str) -> None:
    PROOFS[extra](in_environment(wheel, tmp_path, extra=extra), postgres_url)


@pytest.mark.usefixtures("registry")
def test_a_type_checker_reads_the_types_of_the_installed_package(wheel: Path, tmp_path: Path) -> None:
    """Without `py.typed`, mypy knows nothing about an installed package."""
    found = in_environment(wheel, tmp_path)
    for name, code in {"good": GOOD, "wrong": 'welcome.enqueue(user_id="7")\n'}.items():
        (found.directory / f"{name}.py").write_text(HEAD + code)
    checker = [sys.executable, "-m", "mypy", "--strict", "--python-executable", *found.python, "good.py", "wrong.py"]
    done = subprocess.run(checker, cwd=found.directory, env=found.environment, capture_output=True, text=True)
    (said, total) = done.stdout.splitlines()
    assert 'Argument "user_id" to "enqueue"' in said
    assert said.startswith("wrong.py:")
    assert total.startswith("Found 1 error in 1 file")
