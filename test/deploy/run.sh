#!/usr/bin/env bash
# run.sh [--fast] : tests what docs/install.md describes. Installs the programs first (Debian, as root).
# --fast leaves out the unit under a real systemd (1 minute) and the image (4 minutes). test/deploy/api-server.ts runs alone: its API server takes five minutes to build.
set -euo pipefail
cd "$(dirname "$0")/../.."
test/deploy/install.sh helm kubeconform schemas crds cnpg promtool systemd
PATH="$PWD/node_modules/.bin:$PATH" WAYBILL_TEST_DEPLOY=1 vitest run test/deploy --maxWorkers=1
test/deploy/package.sh
[ "${1:-}" != --fast ] || exit 0
PATH="$PWD/node_modules/.bin:$PATH" test/deploy/systemd.sh
test/deploy/install.sh buildah
test/deploy/image.sh
