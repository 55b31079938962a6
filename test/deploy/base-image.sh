#!/usr/bin/env bash
# base-image.sh [NAME] : builds a local stand-in for the base image of the Dockerfile (default node:24-bookworm-slim), for machines that
# cannot pull it: Debian by debootstrap, Node 24 from the npm package `node`, npm and certificates of this machine. About 90 s, as root.
set -euo pipefail
name=${1:-node:24-bookworm-slim}
export STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
debootstrap --variant=minbase --include=ca-certificates bookworm "$work/root" >"$work/log" 2>&1 || { tail -n 5 "$work/log"; exit 1; }
(cd "$work" && echo '{"private":true}' >package.json && npm install --no-save --no-audit --no-fund node@24 >/dev/null 2>&1)
install -m 755 "$work/node_modules/node/bin/node" "$work/root/usr/local/bin/node"
mkdir -p "$work/root/usr/local/lib/node_modules" "$work/root/usr/local/etc"
cp -r "$(dirname "$(dirname "$(readlink -f "$(command -v npm)")")")" "$work/root/usr/local/lib/node_modules/npm"
ln -s ../lib/node_modules/npm/bin/npm-cli.js "$work/root/usr/local/bin/npm"
ln -s ../lib/node_modules/npm/bin/npx-cli.js "$work/root/usr/local/bin/npx"
rm -rf "$work/root/etc/ssl/certs" && cp -rL /etc/ssl/certs "$work/root/etc/ssl/certs"
printf 'cafile=/etc/ssl/certs/ca-certificates.crt\naudit=false\nfund=false\nupdate-notifier=false\n' >"$work/root/usr/local/etc/npmrc"
container=$(buildah from scratch)
buildah add -q "$container" "$work/root" / >/dev/null
buildah config --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$container"
buildah commit -q "$container" "$name" >/dev/null
buildah rm "$container" >/dev/null
