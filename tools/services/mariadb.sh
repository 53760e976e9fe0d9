#!/usr/bin/env bash
# Runs a private MariaDB server for tests, on a free loopback port and in a new temporary directory.
#
#   mariadb.sh start [OWNER]       prints `directory=…` and `url=…`; stops when process OWNER has ended
#   mariadb.sh stop DIRECTORY      kills the server and removes the directory
#   mariadb.sh crash DIRECTORY     kills the server without a shutdown, and starts it again on the same port
#   mariadb.sh check               exit code 0 if there is a MariaDB to start
#
# Environment: MARIADB_OPTIONS: more options for the server, for example `--log-bin --sync-binlog=1`.
# The server runs as the current user, also as root: it is private and listens on loopback only.
set -euo pipefail
PATH=$PATH:/usr/sbin

check() {
  command -v mariadbd >/dev/null && command -v mariadb-install-db >/dev/null || {
    echo 'MariaDB is not installed (on Debian: apt-get install mariadb-server)' >&2
    return 3
  }
}

launch() {
  local directory=$1 port=$2 tries
  : >"$directory/log"
  # shellcheck disable=SC2086 # several options
  (cd "$directory" && exec setsid mariadbd --no-defaults --user="$(id -un)" --datadir="$directory/data" \
    --socket="$directory/socket" --pid-file="$directory/pid" --port="$port" --bind-address=127.0.0.1 \
    --innodb-buffer-pool-size=32M --innodb-log-file-size=16M --skip-name-resolve \
    $(cat "$directory/options") "${@:3}" >>"$directory/log" 2>&1 </dev/null) &
  for ((tries = 0; tries < 600; tries++)); do
    if grep -q 'ready for connections' "$directory/log"; then return 0; fi
    if grep -q "Can't start server\|Aborting" "$directory/log"; then return 1; fi
    sleep 0.1
  done
  return 1
}

# In a process group of its own (set -m), which outlives a kill of the owner's group, as by `timeout`.
watch() {
  set -m
  (while [ -d "$1" ] && kill -0 "$2" 2>/dev/null; do sleep 1; done; [ ! -d "$1" ] || stop "$1") >/dev/null 2>&1 </dev/null &
  set +m
}

start() {
  local owner=${1:-} directory password port
  check
  directory=$(mktemp -d "${TMPDIR:-/tmp}/mariadb-XXXXXXXX")
  if [ -n "$owner" ]; then watch "$directory" "$owner"; fi
  password=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
  printf '%s' "${MARIADB_OPTIONS:-}" >"$directory/options"
  mariadb-install-db --no-defaults --user="$(id -un)" --datadir="$directory/data" --skip-test-db \
    --auth-root-authentication-method=normal >"$directory/install.log" 2>&1 || { cat "$directory/install.log" >&2; exit 1; }
  (umask 077 && printf '%s\n' 'CREATE DATABASE orders;' "CREATE USER test@'127.0.0.1' IDENTIFIED BY '$password';" \
    "GRANT ALL ON *.* TO test@'127.0.0.1' WITH GRANT OPTION;" 'DROP USER root@localhost;' >"$directory/init.sql")
  for _ in $(seq 20); do
    # Ports below the ephemeral range are rarely in use. If this port is taken, the next attempt
    # uses another.
    port=$((15000 + $(od -An -N2 -tu2 /dev/urandom) % 15000))
    if launch "$directory" "$port" --init-file="$directory/init.sql"; then
      printf '%s' "$port" >"$directory/port"
      printf 'directory=%s\nurl=mysql://test:%s@127.0.0.1:%s/orders\n' "$directory" "$password" "$port"
      return
    fi
  done
  cat "$directory/log" >&2
  rm -rf "$directory"
  return 1
}

finish() {
  local pid
  pid=$(cat "$1/pid" 2>/dev/null) || return 0
  kill -9 "$pid" 2>/dev/null || return 0
  # A server that still has its files open would keep the next one from them.
  while kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
}

stop() {
  finish "$1"
  rm -rf "$1"
}

case ${1:-} in
  check) check ;;
  start) start "${2:-}" ;;
  stop) stop "${2:?}" ;;
  crash)
    finish "${2:?}"
    rm -f "$2/pid"
    launch "$2" "$(cat "$2/port")"
    ;;
  *)
    sed -n '2,7s/^# \{0,1\}//p' "$0"
    exit 2
    ;;
esac
