"""Settings: where each comes from, and that a mistake is never a default."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from detent.app.detent import Detent
from detent.declare.settings import Settings, load_settings
from detent.errors import InvalidSetting


def load(directory: Path, environment: dict[str, str] | None = None, **arguments: Any) -> Settings:
    return load_settings(arguments, environment or {}, directory)


def test_without_anything_the_defaults_hold(tmp_path: Path) -> None:
    assert load(tmp_path) == Settings()


def test_arguments_over_environment_over_file(tmp_path: Path) -> None:
    (tmp_path / "detent.toml").write_text("payload_max = 100\nresult_max = 100\nkey_max = 100\n")
    environment = {"DETENT_PAYLOAD_MAX": "200", "DETENT_RESULT_MAX": "200"}
    found = load(tmp_path, environment, payload_max=300)
    assert (found.payload_max, found.result_max, found.key_max) == (300, 200, 100)


def test_an_argument_of_none_is_not_given(tmp_path: Path) -> None:
    assert load(tmp_path, {"DETENT_KEY_MAX": "99"}, key_max=None).key_max == 99


def test_the_table_in_pyproject(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.detent]\ndatabase_url = "sqlite:///shop.db"\n')
    assert load(tmp_path).database_url == "sqlite:///shop.db"


def test_a_file_of_its_own_wins_over_pyproject(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.detent]\nkey_max = 41\n")
    (tmp_path / "detent.toml").write_text("key_max = 42\n")
    assert load(tmp_path).key_max == 42


def test_a_pyproject_of_somebody_else_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.ruff]\nline-length = 120\n")
    assert load(tmp_path) == Settings()


def test_whole_numbers_serve_where_a_fraction_would(tmp_path: Path) -> None:
    (tmp_path / "detent.toml").write_text("wait_poll = 5\n")
    assert load(tmp_path).wait_poll == 5


@pytest.mark.parametrize(
    ("arguments", "environment", "field", "found"),
    [
        ({"payload_maxx": 1}, {}, "payload_maxx", "a name that is not a setting"),
        ({"payload_max": 1}, {}, "payload_max", "1"),
        ({"payload_max": 10**12}, {}, "payload_max", str(10**12)),
        ({"payload_max": True}, {}, "payload_max", "True"),
        ({"payload_max": 100.5}, {}, "payload_max", "100.5"),
        ({"payload_max": "100"}, {}, "payload_max", "'100'"),
        ({"wait_poll": float("nan")}, {}, "wait_poll", "nan"),
        ({"database_url": ""}, {}, "database_url", "an empty string"),
        ({}, {"DETENT_PAYLOAD_MAX": "lots"}, "DETENT_PAYLOAD_MAX", "'lots'"),
        ({}, {"DETENT_PAYLOAD_MAX": "1.5"}, "DETENT_PAYLOAD_MAX", "'1.5'"),
        ({}, {"DETENT_PAYLOD_MAX": "100"}, "DETENT_PAYLOD_MAX", "a name that is not a setting"),
        ({}, {"DETENT_DATABASEURL": "sqlite:///x.db"}, "DETENT_DATABASEURL", "a name that is not a setting"),
    ],
)
def test_a_mistake_is_refused(
    tmp_path: Path, arguments: dict[str, Any], environment: dict[str, str], field: str, found: str
) -> None:
    """G6: a typing mistake must not be a default."""
    with pytest.raises(InvalidSetting) as refusal:
        load(tmp_path, environment, **arguments)
    assert (refusal.value.field, refusal.value.found) == (field, found)
    assert refusal.value.allowed


def test_variables_of_others_are_left_alone(tmp_path: Path) -> None:
    """What an orchestrator puts there for a service called detent is no mistake of the user's."""
    environment = {
        "DETENT_SERVICE_HOST": "10.0.0.1",
        "DETENT_PORT": "tcp://10.0.0.1:80",
        "DETENT_TEST_DATABASE_URL": "x",
    }
    assert load(tmp_path, environment) == Settings()


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("detent.toml", "key_max =", "a file that is not TOML"),
        ("detent.toml", b"key_max = '\xff'", "a file that is not TOML"),
        ("pyproject.toml", "tool = 3", "tool = 3"),
        ("pyproject.toml", "[tool]\ndetent = 'yes'", "detent = 'yes'"),
    ],
)
def test_a_spoiled_file_is_refused(tmp_path: Path, name: str, text: str | bytes, found: str) -> None:
    (tmp_path / name).write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(InvalidSetting) as refusal:
        load(tmp_path)
    assert refusal.value.field == name
    assert found in refusal.value.found


def test_an_unknown_name_in_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "detent.toml").write_text("payload = 3\n")
    with pytest.raises(InvalidSetting, match=r"payload: found a name that is not a setting; allowed: .*payload_max"):
        load(tmp_path)


def test_a_refused_address_is_not_repeated(tmp_path: Path) -> None:
    """A password never shows in a message."""
    with pytest.raises(InvalidSetting) as refusal:
        load(tmp_path, database_url=b"postgresql://ana:secret@db/shop")
    assert "secret" not in str(refusal.value)


def test_every_setting_has_a_meaning_and_a_default_within_its_range() -> None:
    for one in fields(Settings):
        assert one.metadata["means"]
        if "least" in one.metadata:
            assert one.metadata["least"] <= one.default <= one.metadata["most"]


def test_the_application_reads_environment_and_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "detent.toml").write_text("key_max = 77\n")
    monkeypatch.setenv("DETENT_DATABASE_URL", "sqlite:///from-environment.db")
    app = Detent(payload_max=99)
    assert app.settings == Settings(database_url="sqlite:///from-environment.db", key_max=77, payload_max=99)
    assert list(tmp_path.iterdir()) == [tmp_path / "detent.toml"]
