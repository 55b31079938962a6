#!/usr/bin/env bash
# install.sh NAME... : the real receivers that `npm run test:servers` speaks to, each only if it is missing. Debian's packages (as root), and what
# no package can put beside another in $WAYBILL_TEST_CACHE, else ~/.cache/waybill-servers.
set -euo pipefail
cache=${WAYBILL_TEST_CACHE:-$HOME/.cache/waybill-servers}
mkdir -p "$cache"

update() { [ -n "${updated:-}" ] || apt-get update -q >/dev/null; updated=1; }
packages() {
  update
  DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@" >/dev/null
}

for name in "$@"; do
  case $name in
    rsyslog) [ -e "$(echo /usr/lib/*/rsyslog/imrelp.so)" ] || packages rsyslog rsyslog-gnutls rsyslog-relp ;;
    # Its package conflicts with that of rsyslog: unpacked, not installed.
    syslog-ng)
      if [ ! -x "$cache/syslog-ng/usr/sbin/syslog-ng" ]; then
        update
        work=$(mktemp -d "$cache/unpacking.XXXXXX")
        (cd "$work" && apt-get download -qq -o APT::Sandbox::User=root syslog-ng-core libivykis0 libnet1 libwrap0 libpcre3 libjson-c5)
        for package in "$work"/*.deb; do dpkg -x "$package" "$work/root"; done
        rm -rf "$cache/syslog-ng" && mv "$work/root" "$cache/syslog-ng" && rm -rf "$work"
      fi
      ;;
    kcat) command -v kcat >/dev/null || packages kcat ;;
    *)
      echo "unknown receiver: $name" >&2
      exit 2
      ;;
  esac
done
