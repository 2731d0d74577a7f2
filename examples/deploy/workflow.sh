#!/usr/bin/env bash
# Build a small site, pack it, put it in place, and look at it through the front door.
#
#   workflow.sh RUN PROJECT ENVIRONMENT SHA REF
#
# The pages are in $SITE/<sha>/*.txt: a title, then paragraphs. Releases go to $PLACE/releases, one directory each; `current`
# is the one that is served at $FRONT (host:port). In a repository of your own this is where `git fetch` and `make` stand.
set -euo pipefail
run=$1 project=$2 environment=$3 sha=$4 ref=$5

step() {
  printf %s "$1" >"$OPS_STEP"
  echo "--- $1"
}
html() { sed -e 's/&/\&amp;/g' -e 's/</\&lt;/g' -e 's/>/\&gt;/g'; }

step fetch
source="$SITE/$sha"
[ -d "$source" ] || { echo "there is no commit $sha" >&2; exit 3; }
echo "$project at $ref"

step build
built=$(mktemp -d)
trap 'rm -rf "$built"' EXIT
for page in "$source"/*.txt; do
  name=$(basename "$page" .txt)
  title=$(head -n 1 "$page" | html)
  [ -n "$title" ] || { echo "$name: a page without a title" >&2; exit 4; }
  {
    printf '<!doctype html><title>%s</title>\n<h1>%s</h1>\n' "$title" "$title"
    tail -n +2 "$page" | html | sed -e '/^$/d' -e 's/.*/<p>&/'
    printf '<footer>%s</footer>\n' "$(printf '%s' "$run, $sha" | html)"
  } >"$built/$name.html"
  echo "built $name.html"
done

step pack
mkdir -p "$PLACE/artifacts" "$PLACE/releases"
packed="$PLACE/artifacts/$run.tar"
tar -cf "$packed" -C "$built" .
digest=$(sha256sum "$packed" | cut -d ' ' -f 1)
echo "packed $(wc -c <"$packed") bytes, sha256 $digest"

step deploy
release="$PLACE/releases/$run"
rm -rf "$release"
cp -r "$built" "$release"
before=$(readlink "$PLACE/current" || true)
ln -sfn "releases/$run" "$PLACE/current.new"
mv -T "$PLACE/current.new" "$PLACE/current"

step check
exec 3<>"/dev/tcp/${FRONT%:*}/${FRONT#*:}"
printf 'GET /index.html HTTP/1.0\r\n\r\n' >&3
if ! grep -q "$run, $sha" <&3; then
  echo "the page at $FRONT is not this run's: back to ${before:-nothing}" >&2
  if [ -n "$before" ]; then ln -sfn "$before" "$PLACE/current.new" && mv -T "$PLACE/current.new" "$PLACE/current"; fi
  exit 5
fi
echo "$environment serves it at http://$FRONT/index.html"

cat >"$OPS_RESULT" <<JSON
{"artifacts": [{"type": "site", "file": "$run.tar", "sha256": "$digest"}],
 "deploy_url": "http://$FRONT/index.html", "health_check": "passed"}
JSON
