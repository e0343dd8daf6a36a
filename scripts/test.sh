#!/usr/bin/env bash
# make test: install what the tests stand on, then check everything.
#
# Besides Go, some tests drive real things: nginx serving real documentation
# trees, PostgreSQL and Redis in throw-away directories, the dashboard in
# Chromium (with Node to drive it), a C compiler for the race detector. As root on Debian this script
# installs what is missing. Elsewhere it says in one sentence what is missing
# and what is left out because of it; with CI=true that is a failure instead,
# because a check that did not run must not look like one that passed.
set -euo pipefail
cd "$(dirname "$0")/.."
export GOFLAGS="${GOFLAGS:-} -buildvcs=false" # a clone owned by somebody else has no history to stamp
docs=/usr/share/doc # python3-doc and rust-doc: the real sites that are crawled

ci=false
case "${CI:-}" in true | True | TRUE | 1) ci=true ;; esac

begun=$SECONDS
say() { printf '\n==> [%3ds] %s\n' "$((SECONDS - begun))" "$*"; }

command -v go >/dev/null || PATH="$PATH:/usr/local/go/bin"
command -v go >/dev/null || { echo "Go is not installed; tiptoe needs the version named in go.mod." >&2; exit 1; }

have() { command -v "$1" >/dev/null || [ -x "/usr/sbin/$1" ]; }

compiles() { echo '#include <stdlib.h>' | "${CC:-gcc}" -x c -fsyntax-only - 2>/dev/null; }

# what is missing: a Debian package, and the sentence for who cannot install it
missing() {
  compiles || echo "gcc|A C compiler with its headers (gcc, libc6-dev) is missing: tests run without the race detector."
  have nginx || echo "nginx-light|nginx is missing: the crawl of a real site is left out."
  have curl || echo "curl|curl is missing: the first steps of a newcomer are left out."
  have redis-server || echo "redis-server|Redis is missing: the tests of the fleet are left out."
  ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || have initdb || echo "postgresql|PostgreSQL is missing: its ledger and the tests of the fleet are left out."
  have chromium || have chromium-browser || echo "chromium|Chromium is missing: the dashboard is not tested in a browser."
  have node || echo "nodejs|Node.js is missing: the dashboard is not rebuilt, and not tested in a browser."
  have npm || echo "npm|npm is missing: the dashboard is not rebuilt, and not tested in a browser."
  for tree in python3-doc rust-doc; do
    [ -e "$docs/$tree/html/index.html" ] || echo "$tree|The documentation tree $tree is missing: the crawl of a real site is left out."
  done
  true
}

# Packages must not start services of their own: what this script starts, it stops.
policy=/usr/sbin/policy-rc.d
placed=false
cleanup() { if $placed; then rm -f "$policy"; fi; }
trap cleanup EXIT

install() {
  export DEBIAN_FRONTEND=noninteractive
  if ! [ -e "$policy" ]; then
    placed=true
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
  fi
  # Slim images leave out /usr/share/doc; the trees we crawl live there.
  local options=(-q -y --no-install-recommends -o DPkg::Lock::Timeout=120 -o Acquire::Retries=3 -o "DPkg::Options::=--path-include=$docs/*")
  apt-get update -q -o Acquire::Retries=3 && apt-get install "${options[@]}" "$@" || return 1
  case "$(missing)" in
  *-doc\|*) # installed earlier, without the files
    apt-get install "${options[@]}" --reinstall python3-doc rust-doc $(dpkg-query -W -f '${Package}\n' 'python3.*-doc') || return 1
    ;;
  esac
}

gaps=$(missing)
if [ -n "$gaps" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  packages=$(cut -d'|' -f1 <<<"$gaps")
  case "$packages" in *gcc*) packages="$packages libc6-dev" ;; esac
  say "installing" $packages
  # shellcheck disable=SC2086 # one word a package
  install $packages </dev/null || echo "The packages could not be installed." >&2
  gaps=$(missing)
fi
if [ -n "$gaps" ]; then
  echo
  cut -d'|' -f2 <<<"$gaps" >&2
  if $ci; then
    echo "CI=true: nothing may be left out, so this is a failure." >&2
    exit 1
  fi
fi

# The detector watches our own code. In SQLite, which others test, it would find
# nothing of ours and take ten times as long.
race="-race -gcflags=modernc.org/...=-race=false"
case "$gaps" in *gcc*) race= ;; esac
if [ -n "$race" ]; then export CGO_ENABLED=1; fi

say "gofmt"
unformatted=$(gofmt -l bench cmd internal scripts)
if [ -n "$unformatted" ]; then
  printf 'not as gofmt writes it:\n%s\n' "$unformatted" >&2
  exit 1
fi

say "go vet ./..."
go vet ./...

# Some packages run without the race detector. It would find nothing in what has
# one thread (the simulations, the readers of pages and of our own sources), and
# triple its time; and where tests watch another process, it would only slow that
# process down. make race runs those with it that have threads of their own.
# The last two kinds measure pace, memory and processor time, so that little or
# nothing should run beside them.
all=$(go list ./...)
packages() { grep "$@" <<<"$all"; }
plain='/(cmd/tiptoe|internal/(archtest|extract|export|report|sim|fleetsim|frontier/redisstore|ledger/postgres|dashboard))$'
built='/internal/(acceptance|fleettest)$'
story='/internal/story$'
failed=false

case "$gaps" in
*Node.js* | *npm*) ;;
*)
  say "the dashboard is what its sources build"
  bash scripts/dashboard.sh check </dev/null || failed=true
  ;;
esac

# More packages at once than cores: many wait for databases, pacing and timers.
say "go test ${race%% *}, what has threads of its own"
# shellcheck disable=SC2046,SC2086 # one word a package
go test -p 4 $race -timeout 8m $(packages -vE "$plain|$built|$story") </dev/null || failed=true

# The simulations work while the others wait: the drivers for servers of their
# own, the dashboard for its browser, the scripts for the program they run. The
# embedded frontier comes again: only here it is held against its model at length.
say "go test, the commands, whole crawls and fleets in virtual time, Redis, PostgreSQL, the dashboard in a browser"
# shellcheck disable=SC2046
go test -p 4 -timeout 6m $(packages -E "$plain|/internal/frontier/pebblestore$") </dev/null || failed=true

say "go test, the built program on real servers, killed, frozen and cut off"
# shellcheck disable=SC2046
go test -p 2 -parallel 3 -timeout 10m $(packages -E "$built") </dev/null || failed=true

say "go test, the stories, with nothing beside them"
# shellcheck disable=SC2046
go test -parallel 3 -timeout 10m $(packages -E "$story") </dev/null || failed=true

say "done"
if $failed; then
  echo "Some tests failed; they are marked FAIL above." >&2
  exit 1
fi
if [ -n "$gaps" ]; then echo "All tests passed that could run here; see the sentences at the top."; else echo "All tests passed."; fi
