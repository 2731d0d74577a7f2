# The door to ops runs for whoever has psql and nothing else. Values go as psql variables (:'name' is quoted by psql), so
# quotes, dollars and backslashes in them are letters like any other.
export PGCLIENTENCODING=UTF8 PGOPTIONS="${PGOPTIONS:-} -c client_min_messages=warning"

# A statement on stdin with NAME=VALUE for its variables; fields and rows of the answer end with a NUL.
# 3 where the database refused it, which it says on stderr.
sql() {
  local -a given=()
  local one
  for one in "$@"; do given+=(-v "$one"); done
  psql -X -q -A -t -z -0 -v ON_ERROR_STOP=1 "${given[@]}" -d "$DATABASE_URL" -f -
}

ops_claim() {
  local -a told
  sql worker="$1" >"$work/claim" <<'SQL' || return 2
SELECT c.run_id, c.token, c.project_id, r.env, c.git_sha, c.git_ref
  FROM ops.claim_next_run(:'worker') c JOIN ops.runs r USING (run_id);
SQL
  mapfile -d '' -t told <"$work/claim"
  [ "${#told[@]}" -ge 6 ] || return 3
  run_id=${told[0]} token=${told[1]} project_id=${told[2]} env=${told[3]} git_sha=${told[4]} git_ref=${told[5]}
}

# A line with its number: those that read alike are told apart, and one that is sent again is stored once. One that is too
# long for an event is cut. Where nothing is said for a minute, that is said: a sign of life.
ops_lines() {
  local number=0 silent=0 text code
  while :; do
    IFS= read -r -t 60 text
    code=$?
    if [ $code -gt 128 ]; then
      silent=$((silent + 1))
      patiently ops_line debug "$1" "-$silent" "still running" || return 3
      continue
    fi
    [ $code -eq 0 ] || [ -n "$text" ] || return 0
    number=$((number + 1))
    patiently ops_line info "$1" "$number" "$(printf '%s' "${text:0:16000}" | iconv -c -f UTF-8 -t UTF-8)" || return 3
  done
}

ops_line() {
  sql run="$run_id" token="$token" level="$1" try="$2" number="$3" message="$4" >/dev/null <<'SQL'
SELECT ops.append_event(:'run', :'level', :'message',
  jsonb_build_object('try', (:'try')::integer, 'line', (:'number')::integer), :'token');
SQL
}

ops_finish() {
  local result='{}'
  if [ -s "$OPS_RESULT" ]; then result=$(cat "$OPS_RESULT"); fi
  sql run="$run_id" token="$token" status="$1" code="$2" retries="$3" step="$4" \
    stderr="$(printf '%s' "$5" | iconv -c -f UTF-8 -t UTF-8)" result="$result" >/dev/null <<'SQL'
SELECT ops.finish_run(:'run', :'status',
  (:'result')::jsonb || jsonb_build_object('exit_code', (:'code')::integer, 'retry_count', (:'retries')::integer)
  || CASE :'status' WHEN 'success' THEN '{}'::jsonb ELSE
       jsonb_build_object('error', 'the workflow failed', 'step', :'step', 'stderr', :'stderr') END, :'token');
SQL
}
