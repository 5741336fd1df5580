#!/usr/bin/env bash
# Fuzzes every target of the repository for FUZZTIME seconds each (10 by default), one after the other.
# A finding fails the run; go test writes the input that caused it into the package's testdata/fuzz.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${FUZZTIME:-10}

targets=$(grep -roE '^func Fuzz[A-Za-z0-9_]+' --include='*_test.go' --exclude-dir=testdata . | sort) || true
count=$(grep -c . <<<"$targets") || true
echo "fuzz: $count targets, $seconds s each"

while IFS=: read -r file func; do
    [[ -n $file ]] || continue
    dir=$(dirname "$file")
    name=${func#func }
    echo "fuzz: $name in $dir"
    # Building and replaying the corpus come on top of the fuzzing; a target that hangs must not hang the run.
    timeout --kill-after=10 $((seconds + 120)) \
        go test -run '^$' -fuzz "^$name\$" -fuzztime "${seconds}s" -fuzzminimizetime 10x "$dir" </dev/null |
        sed -E '/^fuzz: elapsed/d; /^PASS$/d'
done <<<"$targets"
