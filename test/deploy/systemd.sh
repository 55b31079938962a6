#!/usr/bin/env bash
# systemd.sh : runs the unit under a real systemd, as PID 1 of separate namespaces over a copy-on-write root: nothing of the machine changes.
# As root on Debian with systemd 252 or later; about a minute. Installs Waybill as docs/install.md says.
set -euo pipefail
cd "$(dirname "$0")/../.."
fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }

if [ -z "${SYSTEMD_ROOT:-}" ]; then
  [ -x /lib/systemd/systemd ] || fail 'this machine has no systemd (apt-get install systemd)'
  SYSTEMD_ROOT=$(mktemp -d)
  export SYSTEMD_ROOT
  trap 'rm -rf "$SYSTEMD_ROOT"' EXIT
  npm pack --silent --pack-destination "$SYSTEMD_ROOT" >/dev/null
  unshare --mount test/deploy/systemd.sh
  exit
fi

# In a mount namespace: an overlay of the machine's root, in which npm installs the package.
mkdir "$SYSTEMD_ROOT/root"
mount -t tmpfs tmpfs "$SYSTEMD_ROOT/root"
mkdir "$SYSTEMD_ROOT"/root/{upper,work,merged}
mount -t overlay -o "lowerdir=/,upperdir=$SYSTEMD_ROOT/root/upper,workdir=$SYSTEMD_ROOT/root/work" overlay "$SYSTEMD_ROOT/root/merged"
root=$SYSTEMD_ROOT/root/merged
cp -L "$(node -p process.execPath)" "$root/usr/local/bin/node"
cp "$SYSTEMD_ROOT"/waybill-*.tgz "$root/root/"
for directory in dev proc; do mount --rbind "/$directory" "$root/$directory"; done
chroot "$root" /bin/sh -c 'cd /root && npm install --silent --global --prefix /usr/local ./waybill-*.tgz' || fail 'npm does not install the package'
umount -l "$root/dev" "$root/proc"

# A network with loopback alone, where port 9464 is free.
unshare --mount --pid --uts --ipc --net --cgroup --fork --kill-child bash -c '
  set -e
  cd "$1"
  mount -t proc proc proc
  mount -t sysfs -o ro sysfs sys
  mount -t cgroup2 cgroup2 sys/fs/cgroup
  # The kernel settings are those of the machine.
  mount --bind proc/sys proc/sys && mount -o remount,ro,bind proc/sys
  mount -t tmpfs tmpfs run
  mount -t tmpfs -o mode=1777 tmpfs tmp
  mount -t tmpfs -o mode=755 dev dev
  for device in null zero urandom random full tty; do touch "dev/$device"; mount --bind "/dev/$device" "dev/$device"; done
  touch dev/console && mount --bind /dev/null dev/console
  mkdir dev/pts dev/shm && mount -t devpts -o newinstance,ptmxmode=666 devpts dev/pts && ln -s pts/ptmx dev/ptmx
  ln -s /proc/self/fd dev/fd
  ip link set lo up
  # Units with mount namespaces and credentials need the root of a mount namespace, whose mounts propagate.
  mkdir before && pivot_root . before
  exec chroot . /bin/sh -c "umount -l /before && mount --make-rshared / && exec env -i container=unshare PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    /lib/systemd/systemd --system --unit=basic.target --show-status=0" </dev/null' bash "$root" &
outer=$!
# unshare ignores SIGTERM.
trap 'kill -KILL "$outer" 2>/dev/null || true' EXIT
inside() { nsenter --target "$(pgrep -P "$outer")" --all /usr/bin/env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
# until_true SECONDS COMMAND... : repeats the command until it succeeds
until_true() {
  local end=$((SECONDS + $1))
  shift
  until "$@" >"$SYSTEMD_ROOT/out.txt" 2>&1; do
    [ "$SECONDS" -lt "$end" ] || { cat "$SYSTEMD_ROOT/out.txt"; inside journalctl --no-pager --unit waybill -n 30; fail "after waiting: $*"; }
    sleep 0.2
  done
}
until_true 60 inside systemctl is-system-running

echo "== $(inside systemctl --version | head -n 1): docs/install.md"
inside /bin/sh -c '
  install -D -m 644 /usr/local/lib/node_modules/waybill/deploy/systemd/waybill.service /etc/systemd/system/waybill.service
  install -d -m 755 /etc/waybill && waybill init file >/etc/waybill/waybill.yaml
  systemctl daemon-reload
  systemd-run --quiet --unit reference --property StandardOutput=file:/run/service.json waybill reference --json --records 2000 --span 1h --activity 20'
until_true 60 inside node -e 'JSON.parse(fs.readFileSync("/run/service.json"))'
inside node -e '
  const { baseUrl, authUrl, tenantId, scopeAddress, subscriptionKey, clients, ca } = JSON.parse(fs.readFileSync("/run/service.json", "utf8"));
  const { clientId, clientSecret } = clients.find(({ roles }) => roles.includes("Security Administrator"));
  fs.mkdirSync("/etc/waybill/credentials", { mode: 0o700 });
  fs.writeFileSync("/etc/waybill/credentials/client-secret", clientSecret, { mode: 0o600 });
  fs.copyFileSync(ca, "/etc/waybill/ca.pem");
  fs.chmodSync("/etc/waybill/ca.pem", 0o644);
  const auth = { authUrl, tenantId, clientId, clientSecret: "${file:/run/credentials/waybill.service/client-secret}", scopeAddress };
  const source = { id: "test", baseUrl, auth, subscriptionKey, tls: { ca: "/etc/waybill/ca.pem" }, proxy: "none", closeDelay: "1s" };
  fs.writeFileSync("/etc/waybill/waybill.yaml", JSON.stringify({
    dataDir: "/var/lib/waybill/state",
    sources: [{ ...source, start: new Date(Date.now() - 36e5).toISOString() }],
    sinks: [{ id: "out", type: "file", path: "/var/lib/waybill/audit.ndjson", format: "raw" }],
  }));'
inside systemctl enable --quiet --now waybill || { inside journalctl --no-pager --unit waybill; fail 'systemctl enable --now waybill'; }
property() { inside systemctl show --property "$1" --value waybill; }
ready() { inside node -e 'fetch("http://127.0.0.1:9464/readyz").then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))'; }
until_true 60 ready
user=$(inside stat -c %u "/proc/$(property MainPID)")
[ "$user" -ge 61184 ] && [ "$user" -le 65519 ] || fail "the daemon runs as user $user, not as a dynamic user"
inside /bin/sh -c 'test -s /var/lib/waybill/audit.ndjson' || until_true 30 inside test -s /var/lib/waybill/audit.ndjson
inside waybill status --data-dir /var/lib/waybill/state >"$SYSTEMD_ROOT/status.txt" || [ $? -eq 3 ] || fail 'status'
head -n 1 "$SYSTEMD_ROOT/status.txt"

echo '== reload, kill, stop, wrong configuration'
logged() { inside journalctl --no-pager --output cat --unit waybill | grep -q "\"event\":\"$1\""; }
inside sed -i 's/"closeDelay":"1s"/"closeDelay":"2s"/' /etc/waybill/waybill.yaml
inside systemctl reload waybill
until_true 30 logged config.reloaded
# Also without waiting for the restart. WAYBILL_RELOADS=100 is the long form. A reset forgets the starts that systemd limits.
for ((i = 0; i < ${WAYBILL_RELOADS:-6}; i++)); do
  inside /bin/sh -c 'systemctl reset-failed waybill; systemctl restart waybill; systemctl reload waybill' || fail "restart and reload $i"
  inside /bin/sh -c 'systemctl reset-failed waybill; systemctl --no-block restart waybill; systemctl reload waybill' || fail "restart and reload at once $i"
done
until_true 60 ready
# From the journal, because right after the reload the unit may not know yet that its process has ended: each end follows a stop.
count() { inside journalctl --no-pager --output cat --unit waybill | grep -c "$1" || true; }
ends=$(count 'Deactivated\|Failed with') stops=$(count '^Stopping')
[ "$ends $(property NRestarts)" = "$stops 0" ] || fail "$stops stops, but $ends ends and $(property NRestarts) restarts by systemd"
echo "$((2 * i)) times restart and reload"
inside kill -KILL "$(property MainPID)"
restarted() { [ "$(property NRestarts)" = 1 ] && ready; }
until_true 60 restarted
inside systemctl stop waybill
[ "$(property Result) $(property ExecMainStatus)" = 'success 0' ] || fail "the stop ended with $(property Result) $(property ExecMainStatus)"
inside node -e '
  const lines = fs.readFileSync("/var/lib/waybill/audit.ndjson", "utf8").trimEnd().split("\n");
  const ids = new Set(lines.map((line) => JSON.parse(line).logId));
  console.log(`${lines.length} records delivered, each once: ${ids.size === lines.length}`);
  process.exit(lines.length > 1000 && ids.size === lines.length ? 0 : 1);' || fail 'a record is missing or twice'
inside sh -c 'echo "sources: none" >/etc/waybill/waybill.yaml'
inside systemctl start waybill || true
ended() { [ "$(property ExecMainStatus)" = 2 ]; }
until_true 30 ended
[ "$(property ActiveState) $(property NRestarts)" = 'failed 0' ] || fail "a wrong configuration: $(property ActiveState), $(property NRestarts) restarts"
echo 'done'
