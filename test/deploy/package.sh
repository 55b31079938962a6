#!/usr/bin/env bash
# package.sh : packs the npm package, installs the tarball into an empty directory as a user does, and runs it; then with an older Node.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }
older=$(PATH=/usr/local/bin:/usr/bin:/bin command -v node || true)
export PATH="$root/node_modules/.bin:$PATH"

# prepack builds it.
npm pack --silent --pack-destination "$work" >/dev/null
# Only Node and npm are on the path of the installation.
mkdir "$work/bin" "$work/install"
ln -s "$(node -p process.execPath)" "$work/bin/node"
(cd "$work/install" && npm init -y >/dev/null && npm install --silent --no-audit --no-fund "$work"/waybill-*.tgz)
cd "$work/install"
export PATH="$work/bin:/usr/bin:/bin"
waybill() { node_modules/.bin/waybill "$@"; }
package=node_modules/waybill

[ "$(waybill --version)" = "$(node -p "require('$root/package.json').version")" ] || fail 'the package prints another version'
[ "$(waybill encode --format cef --example all | wc -l)" -eq 17 ] || fail 'the package does not encode 17 examples'
waybill schema >"$work/schema.json"
node -e '
  const [a, b] = process.argv.slice(1).map((path) => JSON.stringify(JSON.parse(require("node:fs").readFileSync(path, "utf8"))));
  if (a !== b) process.exit(1);
' "$work/schema.json" "$root/config/waybill.schema.json" || fail 'the package prints another schema than the one checked in'
for file in LICENSE NOTICE SECURITY.md CHANGELOG.md docs/install.md docs/operations.md content/prometheus/alerts.yaml content/grafana/dashboard.json \
  deploy/systemd/waybill.service deploy/kubernetes/sidecar.yaml config/example.yaml dist/sbom.cdx.json; do
  [ -s "$package/$file" ] || fail "the package lacks $file"
done
node -e '
  const { bomFormat, metadata, components } = JSON.parse(require("node:fs").readFileSync(process.argv[1], "utf8"));
  const names = new Set(components.map(({ name }) => name));
  const wanted = [...Object.keys(require(process.argv[2]).dependencies), "undici", "zod", "@elastic/elasticsearch"];
  if (bomFormat !== "CycloneDX" || metadata.component.name !== "waybill" || wanted.some((name) => !names.has(name))) process.exit(1);
  if (names.has("vitest")) process.exit(1);
' "$package/dist/sbom.cdx.json" "$root/package.json" || fail 'the bill of materials does not list the libraries of the program'
grep -q '^undici .* (MIT)$' "$package/dist/licences.txt" || fail 'the package lacks the licences of the libraries in it'
waybill demo --for 25s --dir "$work/demo" | tail -n 5
[ -s "$work/demo/events.ndjson" ] || fail 'the demo of the package delivered nothing'

if [ -n "$older" ] && [ "$("$older" -p 'Number(process.versions.node.split(".")[0])')" -lt 24 ]; then
  code=0
  said=$("$older" "$package/bin/waybill.js" run 2>&1) || code=$?
  [ "$code" -eq 2 ] && [ "$(wc -l <<<"$said")" -eq 1 ] && [[ $said == 'waybill needs Node 24 or newer; this is '* ]] || fail "with $older: $said"
  echo "$said"
else
  echo 'not shown: no Node older than 24 on this machine'
fi
