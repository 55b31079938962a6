#!/usr/bin/env bash
# install.sh NAME... : installs the real receivers of `npm run test:servers`, each only if it is missing. Uses Debian's packages (as root). Other
# programs go to $WAYBILL_TEST_CACHE (default ~/.cache/waybill-servers). Exits with 3 if this system has no JDK or Go for a receiver.
set -euo pipefail
cache=${WAYBILL_TEST_CACHE:-$HOME/.cache/waybill-servers}
mkdir -p "$cache"

update() { [ -n "${updated:-}" ] || apt-get update -q >/dev/null; updated=1; }
packages() {
  update
  DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@" >/dev/null
}

# Maven, and a JDK for the programs that it downloads: Elasticsearch needs version 21 or later, which Debian has from 13 on.
maven() { command -v mvn >/dev/null || packages maven; }
java_home() {
  [ -n "${JAVA_HOME:-}" ] && echo "$JAVA_HOME" && return
  ls -d /usr/lib/jvm/*-2[1-9]-* 2>/dev/null | sort -V | tail -1
}
jdk() {
  [ -z "$(java_home)" ] || return 0
  update
  for line in 25 21; do
    if apt-cache show "openjdk-$line-jdk-headless" >/dev/null 2>&1; then packages "openjdk-$line-jdk-headless"; return 0; fi
  done
  echo 'no JDK of version 21 or later among the packages of this system: set JAVA_HOME to one' >&2
  exit 3
}

# Downloads the jars of a broker: kafka VERSION
kafka() {
  local folder=$cache/kafka-$1 work
  [ ! -d "$folder" ] || return 0
  maven
  work=$(mktemp -d "$cache/unpacking.XXXXXX")
  mvn -q -B -f "$here/kafka/pom.xml" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$work" "-Dkafka.version=$1"
  mv "$work" "$folder"
}

# Downloads libraries by Maven, and compiles the program that starts them: java_server NAME VERSION MAIN_SOURCES...
java_server() {
  local name=$1 version=$2 folder=$cache/$1-$2 work home
  shift 2
  [ ! -e "$folder/done" ] || return 0
  maven
  jdk
  home=$(java_home)
  work=$(mktemp -d "$cache/unpacking.XXXXXX")
  mvn -q -B -f "$here/elasticsearch/pom-$POM.xml" dependency:copy-dependencies -DoutputDirectory="$work/lib"
  "$home/bin/javac" -proc:none -nowarn -d "$work/classes" -cp "$work/lib/*" $(find "$@" -name '*.java')
  rm -rf "$folder" && mv "$work" "$folder" && touch "$folder/done"
}
here=$(cd "$(dirname "$0")" && pwd)

# Built from otelcol/go.mod: about 150 s of CPU, 40 MB.
otelcol() {
  local folder=$cache/otelcol-0.160.0 work
  [ ! -x "$folder/otelcol" ] || return 0
  command -v go >/dev/null || { echo 'no go on the path: the OpenTelemetry Collector is built from source' >&2; exit 3; }
  work=$(mktemp -d "$cache/unpacking.XXXXXX")
  (cd "$here/otelcol" && nice -n 10 go build -mod=readonly -trimpath -ldflags '-s -w' -o "$work/otelcol" .)
  rm -rf "$folder" && mv "$work" "$folder"
}

# The CEF parser of Graylog, and a program that reads lines with it.
cef_parser() {
  local folder=$cache/cef-parser-0.0.1.10 work
  [ ! -d "$folder" ] || return 0
  maven
  command -v javac >/dev/null || packages default-jdk-headless
  work=$(mktemp -d "$cache/unpacking.XXXXXX")
  mvn -q -B -f "$here/graylog/pom.xml" dependency:copy-dependencies -DoutputDirectory="$work/lib"
  javac --release 11 -d "$work/classes" -cp "$work/lib/*" "$here/graylog/CefLines.java"
  mv "$work" "$folder"
}

# A client of C2SP logs, built from c2sp-client/go.mod: about 40 s of CPU.
c2sp_client() {
  local folder=$cache/c2sp-client-1.0.0 work
  [ ! -x "$folder/c2sp-client" ] || return 0
  command -v go >/dev/null || { echo 'no go on the path: the C2SP client is built from source' >&2; exit 3; }
  work=$(mktemp -d "$cache/unpacking.XXXXXX")
  (cd "$here/c2sp-client" && nice -n 10 go build -mod=readonly -trimpath -o "$work/c2sp-client" .)
  rm -rf "$folder" && mv "$work" "$folder"
}

# A program of Go, built from its module: go_program NAME VERSION PACKAGE. 77 s of CPU for versitygw, 195 s for MinIO.
go_program() {
  local folder=$cache/$1-${2#v} work
  [ ! -x "$folder/$1" ] || return 0
  command -v go >/dev/null || { echo "no go on the path: $1 is built from source" >&2; exit 3; }
  work=$(mktemp -d "$cache/unpacking.XXXXXX")
  GOBIN=$work nice -n 10 go install -trimpath -ldflags '-s -w' "$3@$2"
  rm -rf "$folder" && mv "$work" "$folder"
}

# Installs Python programs into a separate virtual environment: python_tool NAME PACKAGE==VERSION...
python_tool() {
  local folder=$cache/$1
  shift
  [ ! -d "$folder" ] || return 0
  command -v python3 >/dev/null && python3 -c 'import ensurepip' 2>/dev/null || packages python3 python3-venv
  rm -rf "$folder.new" && python3 -m venv "$folder.new"
  "$folder.new/bin/pip" install -q --disable-pip-version-check "$@"
  # The programs of a virtual environment contain its path.
  sed -i "1s|$folder.new|$folder|" "$folder.new/bin/"* && mv "$folder.new" "$folder"
}

# The converter of Sigma rules with backends, and the validators of SigmaHQ. From PyPI, because `sigma plugin install` downloads from a web site.
sigma() {
  python_tool sigma-3.1.0-validators-0.21.0 sigma-cli==3.1.0 pysigma==1.5.1 pysigma-validators-sigmahq==0.21.0 \
    pysigma-backend-elasticsearch==2.1.1 pysigma-backend-splunk==2.1.0 pysigma-backend-kusto==1.0.1 pysigma-backend-opensearch==2.0.3
}

# Splunk's checks of an app. They determine file types with libmagic.
appinspect() {
  [ -n "$(ls /usr/lib/*/libmagic.so.1 2>/dev/null)" ] || packages libmagic1
  python_tool appinspect-4.3.1 splunk-appinspect==4.3.1
}

for name in "$@"; do
  case $name in
    rsyslog) [ -e "$(echo /usr/lib/*/rsyslog/imrelp.so)" ] || packages rsyslog rsyslog-gnutls rsyslog-relp ;;
    # Unpacked, not installed: its package conflicts with the package of rsyslog.
    syslog-ng)
      if [ -z "$(ls "$cache"/syslog-ng/usr/lib/syslog-ng/*/libadd-contextual-data.so 2>/dev/null)" ]; then
        update
        work=$(mktemp -d "$cache/unpacking.XXXXXX")
        (cd "$work" && apt-get download -qq -o APT::Sandbox::User=root syslog-ng-core syslog-ng-mod-add-contextual-data libivykis0 libnet1 libwrap0 libpcre3 libjson-c5)
        for package in "$work"/*.deb; do dpkg -x "$package" "$work/root"; done
        rm -rf "$cache/syslog-ng" && mv "$work/root" "$cache/syslog-ng" && rm -rf "$work"
      fi
      ;;
    haproxy) command -v haproxy >/dev/null || packages haproxy ;;
    # The proxy of test/servers/syslog-proxies.test.ts; Debian starts its web server on port 80, which no test uses.
    nginx) [ -e /usr/lib/nginx/modules/ngx_stream_module.so ] || packages nginx-light libnginx-mod-stream ;;
    # Debian starts a server of its own on port 5432, which no test uses.
    postgresql) [ -n "$(ls /usr/lib/postgresql/*/bin/postgres 2>/dev/null)" ] || packages postgresql ;;
    pgbouncer) [ -x /usr/sbin/pgbouncer ] || packages pgbouncer ;;
    faketime) [ -n "$(ls /usr/lib/*/faketime/libfaketime.so.1 2>/dev/null)" ] || packages faketime ;;
    kcat) command -v kcat >/dev/null || packages kcat ;;
    kafka) kafka 4.4.0 ;;
    kafka-3) kafka 3.9.2 ;;
    elasticsearch)
      POM=9.5.3 java_server elasticsearch 9.5.3 "$here/elasticsearch/node" "$here/elasticsearch/nine"
      cp -R "$here/elasticsearch/nine-files/." "$cache/elasticsearch-9.5.3/classes/"
      ;;
    elasticsearch-8) POM=8.19.5 java_server elasticsearch 8.19.5 "$here/elasticsearch/node" ;;
    opensearch) POM=opensearch-3.8.0 java_server opensearch 3.8.0 "$here/elasticsearch/opensearch" ;;
    cef-parser) cef_parser ;;
    otelcol) otelcol ;;
    sigma) sigma ;;
    appinspect) appinspect ;;
    c2sp-client) c2sp_client ;;
    litewitness) go_program litewitness v0.6.1 filippo.io/torchwood/cmd/litewitness ;;
    versitygw) go_program versitygw v1.8.0 github.com/versity/versitygw/cmd/versitygw ;;
    minio) go_program minio v0.0.0-20260212201848-7aac2a2c5b7c github.com/minio/minio ;;
    *)
      echo "unknown receiver: $name" >&2
      exit 2
      ;;
  esac
done
