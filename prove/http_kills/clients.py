"""Programs that use a server which dies: they repeat requests until they are answered, and follow streams."""

from __future__ import annotations

import threading
import time
from collections import Counter
from random import Random
from typing import Any

import httpx2

from prove.http_kills.event_messages import Message, MessageReader

__all__ = ["Follower", "Sender"]

_ANSWER_SECONDS_MAX = 20.0
_PAUSE = 0.02
_AGAIN = 0.2
"""The share of jobs that are sent once more after they were accepted."""


class _Program:
    """A thread that goes on until it is told to stop. `error` is what it broke down with."""

    def __init__(self) -> None:
        self.error = ""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._go, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self, seconds: float) -> bool:
        """Return whether it ends in time."""
        self._stop.set()
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _go(self) -> None:
        try:
            self._work()
        except Exception as error:
            self.error = f"{type(error).__name__}: {error}"

    def _work(self) -> None:
        raise NotImplementedError


class Sender(_Program):
    """Enqueues jobs, each under a key of its own, until each is answered, and now and then once more. Also pauses and
    resumes a queue. `jobs` are the answers by key: the ids, of which there must be one."""

    def __init__(self, url: str, number: int, seed: int) -> None:
        super().__init__()
        self._url = f"{url}/api/v1"
        self._number = number
        self._random = Random(f"{seed}/{number}")
        self.jobs: dict[str, set[str]] = {}
        self.payloads: dict[str, dict[str, int]] = {}
        self.said: Counter[str] = Counter()
        self.wrong: list[str] = []

    def _work(self) -> None:
        with httpx2.Client(trust_env=False, timeout=_ANSWER_SECONDS_MAX) as client:
            for n in range(1, 1_000_000):
                if self._stop.is_set():
                    return
                key = f"{self._number}-{n}"
                self.payloads[key] = {"a": self._number, "b": n}
                while True:
                    answer = self._until_answered(
                        client, "/jobs", {"task": "add", "payload": self.payloads[key]}, {"Idempotency-Key": key}
                    )
                    self.jobs.setdefault(key, set()).add(answer["id"])
                    if self._random.random() > _AGAIN:
                        break
                if n % 5 == 0:
                    verb = "pause" if n % 10 else "resume"
                    self._until_answered(client, f"/queues/q{self._number}/{verb}", {"reason": key}, {})

    def _until_answered(self, client: httpx2.Client, path: str, body: dict[str, Any], headers: dict[str, str]) -> Any:
        while True:
            try:
                answer = client.post(f"{self._url}{path}", json=body, headers=headers)
            except httpx2.TransportError as error:
                self.said[type(error).__name__] += 1
                time.sleep(_PAUSE)
                continue
            self.said[str(answer.status_code)] += 1
            if answer.status_code in (200, 201):
                return answer.json()
            if answer.status_code != 503:
                self.wrong.append(f"POST {path} {body} was answered {answer.status_code}: {answer.text[:300]}")
            time.sleep(_PAUSE)


class Follower(_Program):
    """Follows a stream from a place on, and goes on after the last id each time that the connection breaks."""

    def __init__(self, url: str, after: str, **query: Any) -> None:
        super().__init__()
        self._url, self._query = f"{url}/api/v1/stream", query
        self._reader = MessageReader(after)
        self.messages: list[Message] = []
        self.connections = 0
        self.wrong: list[str] = []

    @property
    def last(self) -> str | None:
        """The id after which it would go on."""
        return self._reader.last

    def _work(self) -> None:
        with httpx2.Client(trust_env=False, timeout=_ANSWER_SECONDS_MAX) as client:
            while not self._stop.is_set():
                self._reader.forget_part()
                try:
                    self._follow(client)
                except httpx2.TransportError:
                    time.sleep(_PAUSE)

    def _follow(self, client: httpx2.Client) -> None:
        headers = {"Last-Event-ID": self._reader.last or ""}
        with client.stream("GET", self._url, headers=headers, params=self._query) as answer:
            if answer.status_code != 200:
                if answer.status_code != 503:
                    self.wrong.append(f"the stream was answered {answer.status_code}")
                return
            self.connections += 1
            for line in answer.iter_lines():
                if (found := self._reader.read(line)) is not None:
                    self.messages.append(found)
                if self._stop.is_set():
                    return
