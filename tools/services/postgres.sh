#!/usr/bin/env bash
# Runs a private PostgreSQL server for tests, on a free loopback port and in a new temporary
# directory.
#
#   postgres.sh start [OWNER]       prints `directory=…` and `url=…`; stops when process OWNER has ended
#   postgres.sh stop DIRECTORY      stops the server and removes the directory
#   postgres.sh restart DIRECTORY   stops the server cleanly, and starts it again on the same port
#   postgres.sh crash DIRECTORY     kills the server without a shutdown, and starts it again on the same port
#   postgres.sh check               exit code 0 if there is a PostgreSQL to start
#
# Environment: FSYNC=on to survive a power failure (default off: much faster, and survives
# everything but that); POSTGRES_OPTIONS: more options for the server, for example `-c
# max_connections=5`. PostgreSQL does not run as root. For root, this script runs it as the user
# postgres, which Debian's package creates.
set -euo pipefail

# Uses the newest installed version. Debian does not add the programs to PATH.
bin() {
  local directory
  for directory in $(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -t/ -k5 -Vr) $(dirname "$(command -v initdb || echo /)"); do
    if [ -x "$directory/initdb" ] && [ -x "$directory/pg_ctl" ]; then
      printf '%s\n' "$directory"
      return
    fi
  done
  echo 'PostgreSQL is not installed (on Debian: apt-get install postgresql)' >&2
  return 3
}

as_owner() {
  # Leave the current directory, which the user postgres may not read.
  cd /
  if [ "$(id -u)" -ne 0 ]; then "$@"; else setpriv --reuid=postgres --regid=postgres --init-groups "$@"; fi
}

launch() {
  local directory=$1 port=$2
  as_owner env -u LC_ALL "$(bin)/pg_ctl" -D "$directory/data" -l "$directory/log" -w -t 60 -s \
    -o "-p $port -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=${FSYNC:-off} ${POSTGRES_OPTIONS:-}" \
    start >/dev/null 2>&1
}

# In a process group of its own (set -m), which outlives a kill of the owner's group, as by `timeout`.
watch() {
  set -m
  (while [ -d "$1" ] && kill -0 "$2" 2>/dev/null; do sleep 1; done; [ ! -d "$1" ] || stop "$1") >/dev/null 2>&1 </dev/null &
  set +m
}

start() {
  local owner=${1:-} directory password port
  bin >/dev/null
  directory=$(mktemp -d "${TMPDIR:-/tmp}/postgres-XXXXXXXX")
  if [ -n "$owner" ]; then watch "$directory" "$owner"; fi
  password=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
  (umask 077 && printf '%s' "$password" >"$directory/password")
  if [ "$(id -u)" -eq 0 ]; then chown -R postgres "$directory"; fi
  as_owner "$(bin)/initdb" -D "$directory/data" -U postgres -A scram-sha-256 --pwfile="$directory/password" \
    -E UTF8 --locale=C -N >"$directory/initdb.log" 2>&1 || { cat "$directory/initdb.log" >&2; exit 1; }
  for _ in $(seq 20); do
    # Ports below the ephemeral range are rarely in use. If this port is taken, the next attempt
    # uses another.
    port=$((15000 + $(od -An -N2 -tu2 /dev/urandom) % 15000))
    if launch "$directory" "$port"; then
      printf '%s' "$port" >"$directory/port"
      printf 'directory=%s\nurl=postgres://postgres:%s@127.0.0.1:%s/postgres\n' "$directory" "$password" "$port"
      return
    fi
  done
  cat "$directory/log" >&2
  rm -rf "$directory"
  return 1
}

stop() {
  as_owner "$(bin)/pg_ctl" -D "$1/data" -m immediate -w -s stop >/dev/null 2>&1 || true
  rm -rf "$1"
}

case ${1:-} in
  check) bin >/dev/null ;;
  start) start "${2:-}" ;;
  stop) stop "${2:?}" ;;
  restart | crash)
    if [ "$1" = crash ]; then mode=immediate; else mode=fast; fi
    as_owner "$(bin)/pg_ctl" -D "${2:?}/data" -m "$mode" -w -s stop
    launch "$2" "$(cat "$2/port")"
    ;;
  *)
    sed -n '2,8s/^# \{0,1\}//p' "$0"
    exit 2
    ;;
esac
