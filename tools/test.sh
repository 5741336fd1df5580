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
go test -race -v -timeout 20m ${TESTFLAGS:-} ./... 2>&1 |
    tee "$log" |
    sed -E '/^ *(=== (RUN|PAUSE|CONT|NAME)|--- PASS:)/d; /^PASS$/d' || status=$?

# The reason stands on the line before.
skipped=$(awk '/^ *--- SKIP: / { print "    " $3 ": " reason } { reason = $0; sub(/^ +/, "", reason) }' "$log")
if [[ -n $skipped ]]; then
    echo "skipped tests:"
    echo "$skipped"
    if [[ ${NO_SKIP:-} == 1 ]]; then
        echo "skipped tests count as failures here (NO_SKIP=1)"
        status=1
    fi
fi
if ((status != 0)); then echo "tests failed: all of their output is in $log"; fi
exit "$status"
