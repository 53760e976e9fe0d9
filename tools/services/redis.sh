#!/usr/bin/env bash
# Runs private Redis servers for tests, on free loopback ports, with all their files in one
# directory. Needs redis-server and redis-cli.
#
#   redis.sh start DIRECTORY single|cluster [--owner PID] [SETTING...]
#       Starts one server, or a cluster of three primaries, in a new directory, and prints the port of each on a line.
#       The servers stop by themselves when the owner has ended. A SETTING is one of redis-server's, but no password:
#       --appendonly no
#   redis.sh restart DIRECTORY    Kills the servers as a crash would and starts them again: same ports, same data.
#   redis.sh stop DIRECTORY       Stops them and removes the directory. Does nothing if there is none.
set -euo pipefail

usage() {
  sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
  exit 2
}

command=${1:-}
directory=${2:-}
[ -n "$command" ] && [ -n "$directory" ] || usage
shift 2

for program in redis-server redis-cli; do
  command -v "$program" >/dev/null || { echo "$program is not installed" >&2; exit 127; }
done

ask() {
  redis-cli -h 127.0.0.1 -p "$@" 2>/dev/null
}

# Checks whether the server of a port is running. The process id alone is not enough: another
# program may have it by now, and an ended server keeps it until its parent reads its exit status.
runs() {
  local file="$directory/$1/redis.pid"
  [ -s "$file" ] || return 1
  case $(ps -o args= -p "$(cat "$file")" 2>/dev/null) in *redis-server*":$1"*) ;; *) return 1 ;; esac
}

# Starts the server of a port with the settings in its directory.
launch() {
  local port=$1 home="$directory/$1" tries
  (cd "$home" && redis-server ./redis.conf >redis.out 2>&1) || return 1
  for ((tries = 0; tries < 300; tries++)); do
    if taken "$port"; then return 1; fi
    # A server of another program on this port would respond, too.
    if [ "$(ask "$port" config get dir | tail -n 1)" = "$(cd "$home" && pwd -P)" ] &&
      [ "$(ask "$port" ping)" = PONG ]; then return 0; fi
    sleep 0.05
  done
  return 1
}

taken() {
  grep -qs 'Could not create server TCP\|Failed listening' "$directory/$1/redis.log"
}

# Starts the server of a port again. The port may still be in use for a moment: Linux removes the
# arguments of a killed process before it closes its sockets.
relaunch() {
  local tries
  for ((tries = 0; tries < 100; tries++)); do
    : >"$directory/$1/redis.log"
    if launch "$1"; then return 0; fi
    taken "$1" || return 1
    sleep 0.05
  done
  return 1
}

# Starts a server on a free port and prints the port.
create() {
  local port home tries
  for ((tries = 0; tries < 30; tries++)); do
    # Use a port below the ephemeral range whose cluster port, 10000 higher, is below 65536.
    port=$((15000 + (RANDOM * 32768 + RANDOM) % 10000))
    home="$directory/$port"
    [ ! -e "$home" ] || continue
    mkdir "$home"
    {
      printf '%s\n' "port $port" 'bind 127.0.0.1' 'daemonize yes' 'pidfile redis.pid' 'logfile redis.log' \
        'save ""' 'appendonly yes' 'maxmemory-policy noeviction'
      [ "$kind" = single ] || printf '%s\n' 'cluster-enabled yes' 'cluster-node-timeout 5000'
      local setting
      for setting in "${settings[@]+"${settings[@]}"}"; do
        case $setting in --*) printf '\n%s' "${setting#--}" ;; *) printf ' %s' "$setting" ;; esac
      done
      printf '\n'
    } >"$home/redis.conf"
    if launch "$port"; then
      echo "$port"
      return 0
    fi
    finish "$port" KILL
    taken "$port" || { cat "$home/redis.out" "$home/redis.log" >&2; break; }
    rm -rf "$home"
  done
  echo 'no Redis server could be started' >&2
  return 1
}

# Ends the server of a port and waits for its end.
finish() {
  local pid tries
  runs "$1" || return 0
  pid=$(cat "$directory/$1/redis.pid")
  kill "-$2" "$pid" 2>/dev/null || return 0
  for ((tries = 0; tries < 200; tries++)); do
    runs "$1" || return 0
    sleep 0.05
  done
  kill -KILL "$pid" 2>/dev/null || true
}

ports() {
  local home
  for home in "$directory"/*/; do
    [ ! -e "$home/redis.conf" ] || basename "$home"
  done
}

await_cluster() {
  local tries port ready
  for ((tries = 0; tries < 400; tries++)); do
    ready=0
    for port in "$@"; do
      if ask "$port" cluster info | grep -q '^cluster_state:ok' &&
        [ "$(ask "$port" cluster nodes | grep -c ' connected ')" -eq $# ]; then ready=$((ready + 1)); fi
    done
    [ "$ready" -lt $# ] || return 0
    sleep 0.05
  done
  echo 'the cluster does not come up' >&2
  return 1
}

stop() {
  local port
  for port in $(ports); do finish "$port" "$1"; done
}

case $command in
  start)
    kind=${1:-}
    case $kind in single | cluster) shift ;; *) usage ;; esac
    owner=
    if [ "${1:-}" = --owner ]; then
      owner=${2:-}
      shift 2
    fi
    settings=("$@")
    mkdir -p "$directory"
    directory=$(cd "$directory" && pwd -P)
    [ -z "$(ports)" ] || { echo "$directory is in use" >&2; exit 1; }
    trap 'stop KILL' EXIT
    first=$(create)
    all=("$first")
    if [ "$kind" = cluster ]; then
      all+=("$(create)")
      all+=("$(create)")
      redis-cli --cluster create "${all[@]/#/127.0.0.1:}" --cluster-replicas 0 --cluster-yes >"$directory/create.log"
      await_cluster "${all[@]}"
    fi
    printf '%s\n' "$kind" >"$directory/kind"
    if [ -n "$owner" ]; then
      # In a process group of its own, which outlives a kill of the owner's group, as by `timeout`.
      set -m
      (
        trap '' HUP
        while kill -0 "$owner" 2>/dev/null && [ -e "$directory/kind" ]; do sleep 1; done
        "$0" stop "$directory"
      ) </dev/null >/dev/null 2>&1 &
      set +m
    fi
    trap - EXIT
    printf '%s\n' "${all[@]}"
    ;;
  restart)
    directory=$(cd "$directory" && pwd -P)
    stop KILL
    all=()
    for port in $(ports); do
      relaunch "$port" || { echo "the server on port $port does not start again" >&2; exit 1; }
      all+=("$port")
    done
    if [ "$(cat "$directory/kind")" = cluster ]; then await_cluster "${all[@]}"; fi
    ;;
  stop)
    [ -d "$directory" ] || exit 0
    directory=$(cd "$directory" && pwd -P)
    stop TERM
    rm -rf "$directory"
    ;;
  *) usage ;;
esac
