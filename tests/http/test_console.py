"""The console's files and pages: served beside the API, under any prefix, without a token, and without any data."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

from detent import Detent
from detent.http import console
from detent.http.api import build_api

PAGE = {"Accept": "text/html,*/*"}
INDEX = '<!doctype html><head><base href="/" /><script type="module" src="./assets/a-1.js"></script></head>'


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text(INDEX)
    (tmp_path / ".sources").write_text("hash")
    (tmp_path / "assets" / "a-1.js").write_text("1")
    monkeypatch.setattr(console, "_FILES", tmp_path)


@pytest.fixture
def http(built: None, sqlite_store_url: str) -> TestClient:
    return TestClient(build_api(Detent(sqlite_store_url)), base_url="http://localhost")


@pytest.mark.parametrize("path", ["/", "/jobs", "/jobs/17", "/queues/mail%2Fout", "/jobs/17?a=b", "/no/such/page"])
def test_every_address_of_a_page_answers_the_same_page(http: TestClient, path: str) -> None:
    answer = http.get(path, headers=PAGE)
    assert (answer.status_code, answer.text) == (200, INDEX)
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.headers.get_list("content-security-policy") == [console.POLICY]
    assert "unsafe" not in console.POLICY


def test_files_are_kept_for_long(http: TestClient) -> None:
    answer = http.get("/assets/a-1.js")
    assert (answer.status_code, answer.text) == (200, "1")
    assert answer.headers["content-type"].startswith("text/javascript")
    assert "immutable" in answer.headers["cache-control"]


@pytest.mark.parametrize("path", ["/assets/other.js", "/.sources", "/../api.py", "/%2e%2e/console.py", "/jobs"])
def test_what_is_no_file_is_not_found(http: TestClient, path: str) -> None:
    """Without `Accept: text/html` it is a program that asks, and a page would mislead it."""
    assert http.get(path).status_code == 404


@pytest.mark.parametrize("path", ["/api/v1/nonsense", "/api/v1/jobs", "/metrics"])
def test_the_api_never_answers_with_a_page(http: TestClient, path: str) -> None:
    answer = http.get(path, headers=PAGE)
    assert answer.status_code == 401, "these hold data: they need a token"
    assert "text/html" not in answer.headers["content-type"]


def test_a_wrong_method_on_a_path_of_the_api_is_refused_as_such(built: None, sqlite_store_url: str) -> None:
    client = TestClient(build_api(Detent(sqlite_store_url), tokens_required=False), base_url="http://localhost")
    assert client.get("/api/v1/jobs/17/cancel", headers=PAGE).status_code == 405


def test_under_a_prefix_the_page_says_where_it_is(built: None, sqlite_store_url: str) -> None:
    mounted = Starlette(routes=[Mount("/in&side", build_api(Detent(sqlite_store_url)))])
    client = TestClient(mounted, base_url="http://localhost")
    assert '<base href="/in&amp;side/" />' in client.get("/in&side/jobs/17", headers=PAGE).text
    assert client.get("/in&side/assets/a-1.js").text == "1"


def test_without_a_build_the_page_says_how_to_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sqlite_store_url: str
) -> None:
    monkeypatch.setattr(console, "_FILES", tmp_path / "none")
    client = TestClient(build_api(Detent(sqlite_store_url)), base_url="http://localhost")
    assert "make console-build" in client.get("/", headers=PAGE).text
