#!/usr/bin/env bash
# A worker for one task, in bash and psql: claims jobs one after the other, runs a command for each, and records how it ended.
#
#   DATABASE_URL=postgresql://… worker.sh [--drain] TASK COMMAND [ARGUMENT…]
#
# The command gets the payload as JSON on stdin, and DETENT_JOB_ID, DETENT_ATTEMPT and DETENT_EFFECT_KEY in its environment.
# What it prints is the result, which must be JSON (or nothing). If it fails, the last lines of its stderr are the error, and
# the job is retried later, or quarantined after its last attempt. With --drain the worker ends when no job of the task is ready.
set -euo pipefail

drain=
if [ "${1:-}" = --drain ]; then drain=yes; shift; fi
task=${1:?the name of the task} && shift
lease_seconds=${LEASE_SECONDS:-30} beat_seconds=${BEAT_SECONDS:-2} backoff=${BACKOFF_SECONDS:-2}
name=${WORKER_NAME:-"$(hostname)-$$"}
work=$(mktemp -d) child=
export PGCLIENTENCODING=UTF8 PGOPTIONS="${PGOPTIONS:-} -c client_min_messages=warning"

# Run the SQL on stdin. NAME=VALUE arguments are psql variables, so no value becomes part of a statement's text.
sql() {
  local -a given=()
  local one
  for one in "$@"; do given+=(-v "$one"); done
  psql -X -q -A -t -z -0 -v ON_ERROR_STOP=1 "${given[@]}" -v worker_id="${worker_id:-0}" -v name="$name" -v task="$task" \
    -v job="${job:-0}" -v attempt="${attempt:-0}" -v lease="${lease:-0}" -v seconds="$lease_seconds" -d "$DATABASE_URL" -f -
}

# Send a heartbeat, at least every five seconds; without one, the database takes it that no worker was watching.
beat() {
  sql running="$1" pid="$$" host="$(hostname)" >/dev/null <<'SQL'
SELECT detent.worker_seen_v2(:worker_id, :'name', :'host', :pid, NULL, jsonb_build_array(:'task')::text, 1, :running, false);
SQL
}

# Claim a job: sets job, attempt, lease, effect_key and the file payload. Before that, do what Detent's own workers do in the
# background: make due jobs ready, and take jobs back from workers whose leases have expired.
claim() {
  local -a found
  sql >"$work/claim" <<'SQL'
SELECT FROM (SELECT detent.job_promote_v1(100), detent.lease_reap_v2(100, NULL, :seconds)) upkeep;
SELECT c.job_id, c.attempt, l.id, i.identity || '/' || c.tenant || '/job/' || c.job_id, c.payload
  FROM detent.ids_reserve_v1(1) AS l (id)
 CROSS JOIN LATERAL detent.job_claim_each_v1(l.id, :'name', NULL, ARRAY[:'task'], 1, :seconds, NULL, NULL, '{}') c
 CROSS JOIN LATERAL (SELECT i.identity FROM detent.identity_list_v1() i WHERE i.first_id <= c.job_id
                      ORDER BY i.n DESC LIMIT 1) i
 WHERE c.job_id IS NOT NULL;
SQL
  mapfile -d '' -t found <"$work/claim"
  [ "${#found[@]}" -ge 5 ] || return 1
  job=${found[-5]} attempt=${found[-4]} lease=${found[-3]} effect_key=${found[-2]}
  printf '%s' "${found[-1]}" >"$work/payload"
}

# Renew the lease. Prints `ok`, `cancel` if a cancel was requested, or nothing if the lease is lost.
renew() {
  sql <<'SQL' | tr -d '\0'
SELECT CASE WHEN :job = ANY (r.cancel_requested) THEN 'cancel' ELSE 'ok' END
  FROM detent.lease_renew_v3(ARRAY[:lease]::bigint[], :seconds, '{}', '{}') r;
SQL
}

# End the attempt with success. A refusal means that the lease was lost: another worker runs the job.
finish() {
  sql result="$(cat "$work/result")" <<'SQL' | tr '\0' '\n' >&2
SELECT 'job ' || :job || ' is no longer ours: ' || f.instead
  FROM detent.job_finish_v2(
    ARRAY[:job]::bigint[], ARRAY[:attempt],
    CASE WHEN :'result' = '' THEN NULL ELSE jsonb_build_object(:'job' || ':' || :'attempt', (:'result')::jsonb::text) END,
    :'name', NULL) f;
SQL
}

# End the attempt with an outcome other than success: error, cancelled or released.
abort() {
  sql outcome="$1" error="$2" delay="$((backoff * 2 ** (attempt - 1)))" <<'SQL' | tr '\0' '\n' >&2
SELECT 'job ' || :job || ': ' || coalesce(a.outcome || ', now ' || a.state, 'no longer ours: ' || a.instead, 'committed')
  FROM detent.job_abort_v2(ARRAY[:job]::bigint[], ARRAY[:attempt], ARRAY[:'outcome'], ARRAY[:'error'], ARRAY[:delay]::float8[],
                           '{false}', :'name', '{NULL}', '{false}') a;
SQL
}

end_child() {
  [ -n "$child" ] || return 0
  kill -TERM -- "-$child" 2>/dev/null || true
  wait "$child" 2>/dev/null || true
  child=
}

run() {
  local told=ok code=0
  sql >/dev/null <<<"SELECT detent.job_start_v1(ARRAY[:job]::bigint[], ARRAY[:attempt]);"
  DETENT_JOB_ID=$job DETENT_ATTEMPT=$attempt DETENT_EFFECT_KEY=$effect_key \
    setsid "$@" <"$work/payload" >"$work/result" 2>"$work/stderr" &
  child=$!
  while kill -0 "$child" 2>/dev/null && [ "$told" = ok ]; do
    beat 1
    told=$(renew)
    timeout "$beat_seconds" tail --pid="$child" -f /dev/null || true
  done
  if [ "$told" != ok ]; then end_child; fi
  case $told in
    cancel) abort cancelled "" ;;
    ok)
      wait "$child" || code=$?
      child=
      if [ "$code" = 0 ]; then finish || abort error "the result is not JSON"; else
        abort error "exit code $code: $(tail -n 20 "$work/stderr" | tail -c 4000 | iconv -c -f UTF-8 -t UTF-8)"
      fi ;;
    *) echo "job $job is no longer ours: its lease has expired" >&2 ;;
  esac
  job=0
}

worker_id=$(sql <<<"SELECT detent.ids_reserve_v1(1);" | tr -d '\0')
job=0
# A worker that is told to stop hands its job back, and the attempt does not count.
stop() {
  trap - EXIT
  end_child
  if [ "$job" != 0 ]; then abort released ""; fi
  sql >/dev/null <<<"SELECT detent.worker_gone_v1(:worker_id);" || true
  rm -rf "$work"
  exit "$1"
}
trap 'stop 143' TERM
trap 'stop 130' INT
trap 'stop $?' EXIT

while :; do
  beat 0
  if claim; then run "$@"; elif [ -n "$drain" ]; then exit 0; else sleep 1; fi
done
