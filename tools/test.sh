#!/usr/bin/env bash
# Runs every test with the race detector. Shows go test's own lines less the passing tests, keeps all of them in
# bin/test.log, and lists at the end what was skipped; with NO_SKIP=1 a skipped test is a failure.
#
# TESTFLAGS: more flags for go test, such as -count=1 or -run=Lease.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p bin
log=bin/test.log

status=0
# shellcheck disable=SC2086 # TESTFLAGS is a list
go test -race -v -timeout 10m ${TESTFLAGS:-} ./... 2>&1 |
    tee "$log" |
    sed -E '/^ *(=== (RUN|PAUSE|CONT|NAME)|--- PASS:)/d; /^PASS$/d' || status=$?

skipped=$(sed -nE 's/^ *--- SKIP: ([^ ]+).*/\1/p' "$log")
if [[ -n $skipped ]]; then
    echo "skipped tests:"
    while read -r name; do
        echo "    $name"
        # The reason stands below the test's last line, indented.
        sed -nE "\\|^ *--- SKIP: ${name} |{n;s/^ */        /p;}" "$log"
    done <<<"$skipped"
    if [[ ${NO_SKIP:-} == 1 ]]; then
        echo "skipped tests count as failures here (NO_SKIP=1)"
        status=1
    fi
fi
if ((status != 0)); then echo "tests failed: all of their output is in $log"; fi
exit "$status"
