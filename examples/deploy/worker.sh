#!/usr/bin/env bash
# A worker for ops runs, in bash: claims runs one after the other, does the workflow for each, and says how it ended.
#
#   OPS_DOOR=psql DATABASE_URL=postgresql://… worker.sh [--drain] WORKFLOW
#   OPS_DOOR=detent DETENT_DATABASE_URL=sqlite:///… worker.sh [--drain] WORKFLOW
#
# WORKFLOW is called with the run's id, project, environment, sha and ref as arguments, and whatever they contain stays an
# argument. What it prints becomes events of the run. It may leave a JSON object in the file $OPS_RESULT: artifacts, the
# address, whatever the run shall be finished with. Where it fails, the same run is tried again, up to OPS_ATTEMPTS times
# (3), with pauses that double from OPS_BACKOFF seconds (5); then the run has failed. Where the run was stopped, or is no
# longer ours, its next line is refused: then the workflow is ended, with all its processes. So it is where the worker is
# told to stop (TERM, INT); its run is then silent, and cancelled as one that went stale.
#
# With --drain it ends when no run is queued; otherwise it looks again every OPS_POLL seconds (5).
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
attempts=${OPS_ATTEMPTS:-3} first_pause=${OPS_BACKOFF:-5} poll=${OPS_POLL:-5}
worker=${OPS_WORKER:-"worker-$(hostname)-$$"}
drain=
if [ "${1:-}" = --drain ]; then drain=yes; shift; fi
workflow=${1:?the workflow to do for each run}
work=$(mktemp -d) workflow_group=

# With all its processes, those too that do not listen: nothing of it is left when this returns.
end_workflow() {
  local group=$workflow_group patience=50
  workflow_group=
  [ -n "$group" ] || return 0
  kill -TERM -- "-$group" 2>/dev/null
  while kill -0 -- "-$group" 2>/dev/null && [ $((patience -= 1)) -gt 0 ]; do sleep 0.1; done
  kill -KILL -- "-$group" 2>/dev/null
  return 0
}
trap 'end_workflow; rm -rf "$work"' EXIT
trap 'exit 143' TERM
trap 'exit 130' INT

# Each door gives: ops_claim WORKER (sets run_id, token, project_id, env, git_sha, git_ref; 3 where none waits),
# ops_lines TRY (each line of stdin is an event, at once), ops_finish STATUS EXIT_CODE RETRIES STEP LAST_LINES.
# They return 0, or 3 where they were refused, or anything else where the database could not be asked.
# shellcheck source=/dev/null
. "$here/doors/${OPS_DOOR:-psql}.sh"

# Asked again while the database does not answer. Only for what may be said twice: a claim may not.
patiently() {
  local pause=1 tries=0 code
  while "$@"; code=$?; [ $code -ne 0 ] && [ $code -ne 3 ] && [ $((tries += 1)) -lt 6 ]; do
    sleep "$pause"
    pause=$((pause * 2))
  done
  return $code
}

# One try at the workflow, under a heading: its exit code in `code`, and `lost` where the run is no longer ours.
try_workflow() {
  local said="$work/said" lines="$work/lines"
  rm -f "$lines" "$OPS_RESULT"
  mkfifo "$lines"
  : >"$said"
  setsid "$workflow" "$run_id" "$project_id" "$env" "$git_sha" "$git_ref" >"$lines" 2>&1 </dev/null &
  local pid=$!
  workflow_group=$pid
  # Waited for, not run in front: bash answers a signal while it waits.
  ops_lines "$try" < <(printf '%s\n' "$1"; tee "$said" <"$lines") &
  wait $! || { lost=yes; end_workflow; }
  wait "$pid"
  code=$?
  workflow_group=
}

# A run must end, also where what the workflow left in $OPS_RESULT is refused: then it has failed, and says of what.
finish() {
  patiently ops_finish "$@"
  [ $? -eq 3 ] && [ -s "$OPS_RESULT" ] || return
  rm -f "$OPS_RESULT"
  patiently ops_finish failed "$2" "$3" result "what the workflow left to be kept with the run is no JSON object, or too much"
}

do_run() {
  local try=1 pause=$first_pause code=1 lost= heading="Run begins on $worker"
  export OPS_RESULT="$work/result.json"
  while :; do
    try_workflow "$heading"
    if [ -n "$lost" ]; then
      echo "$run_id is no longer ours: left alone" >&2
      return
    elif [ $code -eq 0 ]; then
      finish success 0 "$((try - 1))" "" ""
      return
    elif [ $try -ge "$attempts" ]; then
      finish failed $code "$((try - 1))" "$(cat "$work/step" 2>/dev/null)" \
        "$(tail -n 20 "$work/said" | tail -c 4000)"
      return
    fi
    sleep "$pause"
    pause=$((pause * 2)) try=$((try + 1))
    heading="Failed with exit code $code: try $try of $attempts"
  done
}

export OPS_STEP="$work/step"
while :; do
  ops_claim "$worker"
  claimed=$?
  if [ $claimed -eq 0 ]; then
    echo "$run_id: $project_id, $env" >&2
    do_run
  elif [ $claimed -eq 3 ]; then
    if [ -n "$drain" ]; then exit 0; fi
    sleep "$poll"
  else
    # A claim whose answer was lost goes stale by itself; the next one is another run.
    echo "the database cannot be asked" >&2
    sleep "$poll"
  fi
done
