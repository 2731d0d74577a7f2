"""The process between a test run and its PostgreSQL server.

It creates a directory with `initdb`, runs the server as its child, reports the port as one line of JSON on standard
output, and then waits. On request on standard input, it stops the server as a crash would and starts it again. When
standard input ends or has any other text, when its parent is gone, or when it receives a signal to terminate, it stops
the server and removes the directory. It has its own process and session, so this works even after the parent was killed
with SIGKILL.

It is started by file name, without the package around it, so it uses the standard library alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

END_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
ACCOUNTS = ("postgres", "nobody")
START_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 15.0
PORT_TRIES_MAX = 5
RESTART = "restart "
MEMORY = "/dev/shm"
MEMORY_BYTES_MIN = 2 << 30
SOCKET_PATH_MAX = 60
"""Maximum length of the root. The whole path of the socket may have about 100 bytes."""

Account = pwd.struct_passwd | None


class Failed(Exception):
    """The server could not be started. The message contains its own output."""


def main(bin_dir: Path, settings: dict[str, str]) -> None:
    """Run the server until the owner releases it. Leave no process and no file behind, however it ends."""
    owner = os.getppid()
    for number in END_SIGNALS:
        signal.signal(number, end_once)
    try:
        account = unprivileged_account()
        in_memory = settings.get("fsync") == "off" and runs_in_place(bin_dir, account)
        with contextlib.ExitStack() as cleanup:
            home = Path(tempfile.mkdtemp(prefix="detent-pg-", dir=temporary_root(account, in_memory=in_memory)))
            cleanup.callback(shutil.rmtree, home, ignore_errors=True)
            server, port, command = start(bin_dir, home, account, settings)
            cleanup.callback(lambda: stop(server))
            report(port=port, home=str(home), pid=server.pid)
            while (down_for := wait_for_owner(owner, server)) is not None:
                stop(server)
                time.sleep(down_for)
                server = spawn(command, home, account, home / "log")
                if not answers(server, home / "data"):
                    raise Failed(f"the server did not start again:\n{tail(home / 'log')}")
                report(pid=server.pid)
            ignore_signals()
    except Exception as error:
        report(error=str(error) if isinstance(error, Failed) else repr(error))
        sys.exit(1)


def unprivileged_account() -> Account:
    """Return the account to run the server as, since PostgreSQL refuses to run as root. None means the current user."""
    if os.geteuid() != 0:
        return None
    for name in ACCOUNTS:
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise Failed(f"running as root, and none of the accounts {', '.join(ACCOUNTS)} exists to run PostgreSQL as")


def temporary_root(account: Account, *, in_memory: bool) -> str:
    """Return the parent of the directory: one that the account can reach, with a path short enough for a socket.

    In memory a throw-away database is created twenty times faster than on a disk. A small memory file system, as in
    containers, is not used.
    """
    roots = [tempfile.gettempdir(), "/tmp", "/var/tmp"]
    if in_memory and Path(MEMORY).is_dir() and shutil.disk_usage(MEMORY).free >= MEMORY_BYTES_MIN:
        roots.insert(0, MEMORY)
    for root in roots:
        if len(root) > SOCKET_PATH_MAX or not os.access(root, os.W_OK | os.X_OK):
            continue
        if account is None or open_to_others(Path(root)):
            return root
    raise Failed(f"none of {', '.join(roots)} is writable, short of path and open to the server's account")


def open_to_others(path: Path) -> bool:
    """Whether any account may enter the path and all its parents, and read it."""
    resolved = path.resolve()
    way_is_open = all(parent.stat().st_mode & 0o001 for parent in resolved.parents)
    return way_is_open and resolved.stat().st_mode & 0o005 == 0o005


def runs_in_place(bin_dir: Path, account: Account) -> bool:
    return account is None or (open_to_others(bin_dir) and open_to_others(bin_dir / "postgres"))


def reachable_binaries(bin_dir: Path, home: Path, account: Account) -> Path:
    """Return binaries that the account can run: the given ones, else a copy in our directory.

    The copy is needed for a virtual environment below a closed directory, such as the home of root. The libraries of a
    wheel are beside its package (`name.libs`) and found relative to the binaries, so they are copied to the same place.
    """
    if account is None or runs_in_place(bin_dir, account):
        return bin_dir
    install = bin_dir.parent
    package = install.parent
    copy = home / "binaries" / package.name / install.name
    shutil.copytree(install, copy, symlinks=True, ignore=shutil.ignore_patterns("include"))
    libraries = package.parent / f"{package.name}.libs"
    if libraries.is_dir():
        shutil.copytree(libraries, home / "binaries" / libraries.name)
    for path in (home / "binaries", *(home / "binaries").rglob("*")):
        os.chown(path, account.pw_uid, account.pw_gid, follow_symlinks=False)
    return copy / bin_dir.name


def start(
    bin_dir: Path, home: Path, account: Account, settings: dict[str, str]
) -> tuple[subprocess.Popen[bytes], int, list[str]]:
    """Start a server. Return it when it accepts connections, with its port and the command that started it.

    Another program may take the free port first, so there are several tries.
    """
    if account is not None:
        os.chown(home, account.pw_uid, account.pw_gid)
    binaries = reachable_binaries(bin_dir, home, account)
    data = home / "data"
    locale = "C.UTF-8" if sys.platform == "linux" else "C"
    said = home / "log"
    making = [str(binaries / "initdb"), "-D", str(data), "-U", "postgres", "--auth=trust", "--encoding=UTF8"]
    with spawn([*making, f"--locale={locale}", "--no-sync", "--no-instructions"], home, account, said) as initdb:
        try:
            ended_with = initdb.wait(START_SECONDS_MAX)
        except BaseException:
            initdb.kill()
            raise
    if ended_with != 0:
        raise Failed(f"initdb failed:\n{tail(said)}")
    for _ in range(PORT_TRIES_MAX):
        port = free_port()
        options = {**settings, "port": str(port), "unix_socket_directories": str(home)}
        flags = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        command = [str(binaries / "postgres"), "-D", str(data), *flags]
        server = spawn(command, home, account, said)
        try:
            if answers(server, data):
                return server, port, command
        except BaseException:
            stop(server)
            raise
    raise Failed(f"the server did not start:\n{tail(said)}")


def spawn(command: list[str], home: Path, account: Account, said: Path) -> subprocess.Popen[bytes]:
    """Run a command of PostgreSQL as the account, without the PG* variables of the caller."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    with said.open("ab") as log:
        return subprocess.Popen(
            command,
            cwd=home,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            user=account.pw_uid if account else None,
            group=account.pw_gid if account else None,
            extra_groups=[] if account else None,
        )


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def answers(server: subprocess.Popen[bytes], data: Path) -> bool:
    """Wait until the server accepts connections. Return False if it ended instead. `Failed` after the time limit."""
    deadline = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < deadline:
        if server.poll() is not None:
            return False
        with contextlib.suppress(FileNotFoundError):
            lines = (data / "postmaster.pid").read_text().splitlines()
            if len(lines) >= 8 and lines[0] == str(server.pid) and lines[7].strip() == "ready":
                return True
        time.sleep(0.02)
    raise Failed(f"the server was not ready after {START_SECONDS_MAX:.0f} s")


def wait_for_owner(owner: int, server: subprocess.Popen[bytes]) -> float | None:
    """Wait for the owner. Return None when the owner releases the server or is gone, or when the server has ended by
    itself; return a number of seconds when the owner wants a restart after that time.

    Usually the pipe ends. The parent is checked too, since a forked child of a killed owner may still hold the other
    end.
    """
    while os.getppid() == owner and server.poll() is None:
        readable, _, _ = select.select([sys.stdin], [], [], 1.0)
        if readable:
            word = os.read(sys.stdin.fileno(), 100).decode().strip()
            return float(word.removeprefix(RESTART)) if word.startswith(RESTART) else None
    return None


def stop(server: subprocess.Popen[bytes]) -> None:
    """Stop the server at once. Its files are about to be removed, so nothing need be written."""
    for number in (signal.SIGQUIT, signal.SIGKILL):
        if server.poll() is None:
            server.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(STOP_SECONDS_MAX)
            return


def end_once(*_: object) -> None:
    """Begin to clean up at the first signal, and ignore later ones."""
    ignore_signals()
    sys.exit(1)


def ignore_signals() -> None:
    for number in END_SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def tail(said: Path) -> str:
    return "\n".join(said.read_text(errors="replace").splitlines()[-20:])


def report(**facts: int | str) -> None:
    """Write one line for the owner. If the owner is gone, cleaning up goes on."""
    with contextlib.suppress(BrokenPipeError):
        os.write(sys.stdout.fileno(), (json.dumps(facts) + "\n").encode())


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
