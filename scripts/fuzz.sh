#!/usr/bin/env bash
# make fuzz: every fuzz target in turn, FUZZTIME each (default 30s).
# What a target finds is kept in its package's testdata/fuzz and from then on
# runs with every make test.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${FUZZTIME:-30s}
only=${ONLY:-.}
failed=()
while IFS=: read -r file target; do
  package=./$(dirname "$file")
  [[ "$package.$target" =~ $only ]] || continue
  printf '==> %s %s for %s\n' "$package" "$target" "$time"
  go test "$package" -run='^$' -fuzz="^$target\$" -fuzztime="$time" </dev/null || failed+=("$package.$target")
done < <(grep -roE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' internal cmd | sed 's/:func /:/' | sort)
if [ ${#failed[@]} -gt 0 ]; then
  printf 'failed: %s\n' "${failed[@]}" >&2
  exit 1
fi
