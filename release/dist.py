"""Build what is published, into a folder: `make dist`, or `python -m release.dist FOLDER`.

| file | what it is |
|---|---|
| `detent-VERSION.tar.gz` | the sources, with the console as it is built |
| `detent-VERSION-py3-none-any.whl` | the package, built from that archive |
| `detent-VERSION.cdx.json` | the bill of materials (CycloneDX): what the package needs and what the console contains |
| `SHA256SUMS` | the checksums of all of them, for `sha256sum --check` |

The same sources give the same bytes. Times come from SOURCE_DATE_EPOCH, else from the last commit.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
import venv
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from console.build import is_current

__all__ = ["NotBuilt", "build_archives", "build_dist", "sums"]

ROOT = Path(__file__).parents[1]
CONSOLE = ROOT / "console"
PUBLISHED = ("postgres", "server", "metrics", "otel", "django")
"""The extras whose packages are in the bill of materials: all that are not for developers of Detent."""
BUILD_TOOLS = ("vite",)
"""Packages of the console that build it and are not part of it."""


class NotBuilt(Exception):
    """The files cannot be published as they are; the message says what to do."""


def build_dist(into: Path) -> list[Path]:
    """Build everything into an empty folder, and return the files. `NotBuilt`."""
    if not is_current():
        raise NotBuilt(
            "the console is not built from these sources. Run `make console-build`, which says what it needs"
        )
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    archive, wheel = build_archives(ROOT, into)
    bill = into / f"{archive.name.removesuffix('.tar.gz')}.cdx.json"
    bill.write_text(json.dumps(_bill_of(wheel), indent=2, sort_keys=True) + "\n", encoding="utf-8")
    checksums = into / "SHA256SUMS"
    checksums.write_text(sums([archive, wheel, bill]), encoding="utf-8")
    return [archive, wheel, bill, checksums]


def build_archives(root: Path, into: Path) -> tuple[Path, Path]:
    """Build the source archive of a checkout, and the wheel from that archive."""
    environment = os.environ | {"SOURCE_DATE_EPOCH": _epoch(root)}
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(into.resolve()), "-t"]
    _run([*build, "sdist"], root, environment)
    (archive,) = into.glob("*.tar.gz")
    with tempfile.TemporaryDirectory() as sources:
        _run(["tar", "-xzf", str(archive.resolve()), "--strip-components=1"], Path(sources), environment)
        _run([*build, "wheel"], Path(sources), environment)
    (wheel,) = into.glob("*.whl")
    return archive, wheel


def sums(files: list[Path]) -> str:
    """Return the checksums of files, as `sha256sum` prints them."""
    return "".join(f"{hashlib.sha256(one.read_bytes()).hexdigest()}  {one.name}\n" for one in files)


def _epoch(root: Path) -> str:
    """Return the time that all files of the package get."""
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        return given
    done = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NotBuilt("the time of the sources is not known: this is no git checkout. Set SOURCE_DATE_EPOCH")
    return done.stdout.strip()


def _bill_of(wheel: Path) -> dict[str, Any]:
    """Return the bill of materials: what an installation of the wheel brings, with the extras, and what the console
    is built from."""
    with tempfile.TemporaryDirectory() as place:
        home = Path(place) / "venv"
        venv.create(home, with_pip=False)
        pip = [sys.executable, "-m", "pip", "--python", str(home / "bin" / "python"), "install", "--quiet"]
        wanted = f"{wheel}[{','.join(PUBLISHED)}]"
        _run([*pip, "--disable-pip-version-check", "-c", str(ROOT / "constraints.txt"), wanted], ROOT, os.environ)
        report = Path(place) / "bill.json"
        maker = [
            sys.executable,
            "-m",
            "cyclonedx_py",
            "environment",
            "--output-reproducible",
            "--output-format",
            "JSON",
        ]
        project = ["--pyproject", str(ROOT / "pyproject.toml"), "--mc-type", "library"]
        _run([*maker, *project, "--output-file", str(report), str(home / "bin" / "python")], ROOT, os.environ)
        bill: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
    bill["metadata"]["timestamp"] = datetime.fromtimestamp(int(_epoch(ROOT)), UTC).isoformat()
    bill["serialNumber"] = uuid.uuid5(uuid.NAMESPACE_URL, hashlib.sha256(wheel.read_bytes()).hexdigest()).urn
    bill["components"] = [one for one in bill["components"] if one["name"] != "detent"] + list(_console_parts())
    return bill


def _console_parts() -> Iterator[dict[str, Any]]:
    """Yield the packages whose code is in the console's files, and those that they need. `NotBuilt`."""
    wanted = [name for name in _needs_of(CONSOLE / "package.json")[1] if name not in BUILD_TOOLS]
    for name in wanted:
        version, needs = _needs_of(CONSOLE / "node_modules" / name / "package.json")
        wanted += [one for one in needs if one not in wanted]
        address = f"pkg:npm/{name.replace('@', '%40')}@{version}"
        yield {"type": "library", "name": name, "version": version, "purl": address, "bom-ref": address}


def _needs_of(package: Path) -> tuple[str, list[str]]:
    """Return the version of a package of the console, and the names of those it needs."""
    if not package.is_file():
        missing = f"{package.relative_to(ROOT)} is missing"
        raise NotBuilt(f"{missing}. Remove src/detent/http/console_files, and run `make console-build`")
    described: dict[str, Any] = json.loads(package.read_text(encoding="utf-8"))
    return described.get("version", ""), list(described.get("dependencies", ()))


def _run(command: list[str], place: Path, environment: Mapping[str, str]) -> None:
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NotBuilt(f"`{' '.join(command)}` failed: {(done.stderr or done.stdout).strip()[-2000:]}")


def main() -> int:
    """Build into the folder that is named, and print its files."""
    try:
        files = build_dist(Path(sys.argv[1]))
    except NotBuilt as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write("".join(f"{file}\n" for file in files))
    return 0


if __name__ == "__main__":
    sys.exit(main())
