#!/usr/bin/env bash
# make fleet-demo: a whole fleet on this machine, in a throw-away directory.
#
# Redis, PostgreSQL, one tiptoe serve, three tiptoe workers and a simulated web
# of thirty hosts, all on loopback and on free ports. A first job is ordered;
# the dashboard's address and key are printed. Ctrl+C stops all that was started
# here and nothing else. FOR=20 stops by itself after so many seconds.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v go >/dev/null || PATH="$PATH:/usr/local/go/bin"

need() { echo "$1 is not here; install it (Debian: $2) and try again." >&2; exit 1; }
redis=$(command -v redis-server || command -v valkey-server || true)
[ -n "$redis" ] || need "A Redis server" redis-server
pg=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1)
[ -x "$pg/initdb" ] || pg=$(dirname "$(command -v initdb || true)")
[ -x "$pg/initdb" ] || need "PostgreSQL" postgresql

dir=$(mktemp -d "${TMPDIR:-/tmp}/tiptoe-fleet-demo-XXXXXX")
chmod 755 "$dir"
pids=()
stop() {
  trap - EXIT INT TERM
  echo
  echo "stopping"
  for ((i = ${#pids[@]} - 1; i >= 0; i--)); do
    kill -TERM "${pids[i]}" 2>/dev/null || true
    # Ten seconds for each, the last started first: workers before their stores.
    for _ in $(seq 100); do kill -0 "${pids[i]}" 2>/dev/null || break; sleep 0.1; done
    kill -KILL "${pids[i]}" 2>/dev/null || true
  done
  rm -rf "$dir"
}
trap stop EXIT
trap 'exit 0' INT TERM

# In a session of its own, so that Ctrl+C reaches only this script, which then
# stops everything in order.
start() { # name, command...
  local log="$dir/$1.log"
  shift
  setsid "$@" >"$log" 2>&1 </dev/null &
  pids+=($!)
}

# Whoever listens on port 0 is told a free one; ours are drawn and tried.
free() {
  local port
  for _ in $(seq 50); do
    port=$((20000 + RANDOM % 20000))
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
  done
  echo "no free port was found" >&2
  return 1
}

# until FILE PATTERN waits for a line, half a minute at most.
until_said() {
  for _ in $(seq 300); do
    grep -qE "$2" "$1" 2>/dev/null && return
    sleep 0.1
  done
  echo "$1 does not say \"$2\":" >&2
  tail -n 20 "$1" >&2
  return 1
}

echo "building"
go build -buildvcs=false -o "$dir/tiptoe" ./cmd/tiptoe
go build -buildvcs=false -o "$dir/webfarm" ./internal/webfarm/cmd/webfarm

redis_port=$(free)
mkdir "$dir/redis"
start redis "$redis" --port "$redis_port" --bind 127.0.0.1 --dir "$dir/redis" --save "" --appendonly yes --appendfsync always

# PostgreSQL refuses to run as root, so then it runs as its own user.
mkdir "$dir/pg"
as=()
if [ "$(id -u)" = 0 ]; then
  user=$(id -un postgres 2>/dev/null || id -un nobody)
  chown "$user" "$dir/pg"
  as=(setpriv --reuid "$user" --regid "$(id -gn "$user")" --clear-groups)
fi
pg_port=$(free)
(cd "$dir/pg" && "${as[@]}" "$pg/initdb" -D "$dir/pg/data" -U tiptoe -A trust -E UTF8 --no-sync) >"$dir/initdb.log" 2>&1 || { cat "$dir/initdb.log" >&2; exit 1; }
start postgres "${as[@]}" "$pg/postgres" -D "$dir/pg/data" -p "$pg_port" -c listen_addresses=127.0.0.1 -c "unix_socket_directories=$dir/pg"
until_said "$dir/postgres.log" "ready to accept connections"
until_said "$dir/redis.log" "[Rr]eady to accept connections"

start web "$dir/webfarm" --placement addresses --hosts 30 --pages 300 --links 20 --page-size 8192 --cross-host 0.2 \
  --latency 40ms --jitter 80ms --rate 8 --burst 2 --retry-after 2s
until_said "$dir/web.log" "^resolve:"
home=$(sed -n 's/^seed: //p' "$dir/web.log")

fleet=(--redis-url "redis://127.0.0.1:$redis_port" --database-url "postgres://tiptoe@127.0.0.1:$pg_port/postgres" --lease-ttl 10s --allow-private)
start serve "$dir/tiptoe" serve --data-dir "$dir/serve" --listen 127.0.0.1:0 "${fleet[@]}" --max-pages-per-crawl 0 --crawl-timeout-ms 0 --max-concurrent-crawls 4
until_said "$dir/serve.log" "Operator key"
address=$(grep -oE 'http://[0-9.:]+' "$dir/serve.log" | head -n 1)
key=$(grep -oE 'tt_[A-Za-z0-9_-]+' "$dir/serve.log" | head -n 1)
for n in 1 2 3; do start "worker$n" "$dir/tiptoe" worker --data-dir "$dir/w$n" "${fleet[@]}"; done

TIPTOE_KEY=$key TIPTOE_SERVER=$address "$dir/tiptoe" job run "$home" --scope any --profile polite >"$dir/job.log" 2>&1 || { cat "$dir/job.log" >&2; exit 1; }
for _ in $(seq 100); do
  [ "$("$dir/tiptoe" workers --redis-url "redis://127.0.0.1:$redis_port" --json | wc -l)" = 4 ] && break
  sleep 0.2
done
cat <<END

  dashboard   $address
  key         $key

  $dir/tiptoe workers --redis-url redis://127.0.0.1:$redis_port

A job crawls 30 hosts; kill -9 a worker and watch (logs are in $dir).
Ctrl+C stops everything.

END
"$dir/tiptoe" workers --redis-url "redis://127.0.0.1:$redis_port"
for ((n = 0; n < ${FOR:-1000000000}; n++)); do
  sleep 1 &
  wait $!
done
