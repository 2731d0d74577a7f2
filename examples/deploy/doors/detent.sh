# The door to ops runs through `detent ops`: for SQLite, and for whoever has no psql. OPS_DETENT may say how it is called.
read -r -a detent <<<"${OPS_DETENT:-detent}"

# 3 where it was refused; 5, say, where there is no database.
ops() {
  "${detent[@]}" ops "$@" >"$work/answer"
  local code=$?
  [ $code -eq 4 ] && return 3
  return $code
}

ops_claim() {
  local name value
  ops claim "$1" 2>/dev/null || return
  while IFS='=' read -r name value; do
    case $name in run_id | token | project_id | env | git_sha | git_ref) printf -v "$name" %s "$value" ;; esac
  done <"$work/answer"
}

ops_lines() { ops event "$run_id" --token "$token" --payload "{\"try\":$1}" -- -; }

ops_finish() {
  local -a more=()
  if [ -s "$OPS_RESULT" ]; then more+=(--metadata "$(cat "$OPS_RESULT")"); fi
  if [ "$1" = failed ]; then
    more+=(--set "error=the workflow failed" --set "step=$4" --set "stderr=$(printf '%s' "$5" | iconv -c -f UTF-8 -t UTF-8)")
  fi
  ops finish "$run_id" "$1" --token "$token" "${more[@]}" --metadata "{\"exit_code\":$2,\"retry_count\":$3}"
  local code=$?
  [ $code -eq 2 ] && return 3 # what was given cannot be taken, however often it is asked
  return $code
}
