"""The page of the HTTP API, generated from its verbs."""

from __future__ import annotations

import itertools

from detent.http.api import list_verbs
from detent.http.verbs import Verb

__all__ = ["http_page"]

_HEAD = """\
# HTTP API

`detent server` serves the nouns and verbs of Python and of the command line over HTTP. It needs the extra packages of
`pip install 'detent[server]'`.

```sh
detent server shop:app                  # http://127.0.0.1:8321/api/v1
curl localhost:8321/api/v1/jobs --json '{"task": "shop.welcome", "payload": {"user_id": 7}}'
curl 'localhost:8321/api/v1/jobs?state=quarantined&limit=20'
curl localhost:8321/api/v1/queues/mail/pause --json '{"reason": "the provider is down"}'
```

To serve it inside an application of your own, mount it:

```python run
from fastapi import FastAPI

from detent import Detent
from detent.http.api import build_api

shop = FastAPI()
app = Detent("sqlite:///shop.db")
app.migrate()
shop.mount("/detent", build_api(app, hosts=["shop.example"]))
```

## Rules

- **Requests.** A GET takes its arguments in the query, a POST as a JSON object. An unknown argument is refused.
- **Answers** are JSON objects. Ids are strings, times are ISO 8601 in UTC. A verb that returns a single value
  answers with an object that has the verb's name: `{"why": "it is ready …"}`.
- **Lists** have `items` and `next`. Give `next` as `after` to get the next page; at the end it is null.
- **Errors** are `application/problem+json`: `title` is the class of the error, `code` its code in
  [errors.md](errors.md), `detail` the sentence, and `fields` its parts.
- **`Idempotency-Key`** is the key of the job or ops run that the request creates. A repeated request answers 200 with
  the job that is there, instead of 201.
- **Bulk verbs** take the filters of `GET /jobs` in the query. With `dry_run=true` they count and change nothing.
- **`ETag`**: send it back as `If-None-Match`, and an answer that has not changed is 304 without a body.
- **Who acts**: changes are recorded under the name of the token, or without one under the actor of the application,
  or `--actor` of `detent server`. `detent dev` uses your login name. `reason` in the body is recorded with them.
- `/healthz` answers while the process serves requests. `/readyz` answers 200 only if the database answers too.
- `/metrics` has the [metrics](metrics.md) of the database for Prometheus. It needs a token that reaches all tenants.
- `POST /api/v1/jobs` takes the trace context of the header `traceparent`, unless the body has one.
- `/api/v1/openapi.json` describes all of this, except the stream, as OpenAPI 3.1.

## Stream

`GET /api/v1/stream` tells what happens as [Server-Sent Events][sse]. In a browser:

```js
const stream = new EventSource("/api/v1/stream?job=17")
stream.addEventListener("event", (message) => show(JSON.parse(message.data)))
stream.addEventListener("end", () => stream.close())
```

| query | messages with an id | other messages |
|---|---|---|
| none | `change`: a line of the record | `counts`: jobs by queue and state |
| `job=17` | `event`: a line that the job wrote; `transition`: a step of the job or of an attempt | |
| `ops=run-17` | the same, of an ops run | |
| `run=17` | `transition`: a state of a batch run or pipeline run | `run`: the run as it is |

`counts` and `run` are sent at most once a second, and only if they have changed.

- **The beginning.** A job or a run is told from its beginning, the record from now on. `after=ID` starts after a
  message.
- **Reconnecting.** A client that sends the id of its last message as `Last-Event-ID`, as browsers do, misses nothing
  and gets nothing twice, also if the server was restarted. Ids are opaque. Only lines on record have one.
- **The record** has explicit changes. The ordinary steps of attempts (claim, start, commit, finish) are told by the
  stream of their job, and by `counts`.
- **The end.** When a job or run has come to rest, the stream says `end` and closes. With `follow=true` it stays open,
  since someone may retry it. `end` comes also when the job was deleted by retention, and within ten seconds after the
  token of the stream was revoked. After `end`, do not reconnect. A stream that closes without `end` is to be opened
  again.
- **`reset`** says that lines may be missing: retention has deleted them, or the id belongs to another database or to
  a time after the backup that was restored. The stream goes on; read again what you show. An id that is none is
  refused with 422.
- **Order.** All lines of one job, run, queue or other entity come in order. Lines of different entities come in the
  order in which they were committed, as far as it is known. A transaction that stays open delays only its own lines.
- **Limits.** A process has 1,000 streams at most, a token 250; beyond that the answer is 503 or 429 with
  `Retry-After`. A client that takes nothing for 30 seconds is cut off, and continues when it reconnects. A comment is
  sent every 15 seconds.
- **Tenants.** A token of one tenant follows the jobs, runs, changes and counts of this tenant. Others do not exist
  for it.
- **Behind a proxy**, switch buffering off for this path. The answer has `X-Accel-Buffering: no`, which nginx obeys.
- **Mounted in an application of your own**, streams keep uvicorn from stopping. Start it with
  `--timeout-graceful-shutdown 2`. `detent server` ends the streams by itself.

[sse]: https://html.spec.whatwg.org/multipage/server-sent-events.html

## Security

On a loopback address, which is the default, requests without a token may do everything. On any other address, and with
`--require-token`, every request needs a token: `Authorization: Bearer dtn_…`. [security.md](security.md) explains
tokens, roles, tenants, and secret fields.

## Verbs

All paths are below `/api/v1`. This page is generated by `python -m tests.docs.pages`.
"""


def http_page() -> str:
    """Return the page: its text, and a table of verbs for each noun."""
    parts = [_HEAD]
    listed = sorted(list_verbs(), key=lambda verb: (verb.noun, verb.path, verb.changes))
    for noun, verbs in itertools.groupby(listed, key=lambda verb: verb.noun):
        parts += [f"### {noun}", "", "| verb | takes | |", "|---|---|---|"]
        parts += [_line(verb) for verb in verbs]
        parts.append("")
    return "\n".join(parts)


def _line(verb: Verb) -> str:
    taken = ", ".join(f"`{name}`" for name in (*verb.filters.__struct_fields__, *verb.arguments.__struct_fields__))
    method = "POST" if verb.changes else "GET"
    summary = verb.summary.replace("|", "\\|")
    return f"| `{method} {verb.path.replace(':path', '')}` | {taken} | {summary} |"
