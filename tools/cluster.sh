#!/usr/bin/env bash
# Starts three nodes on this machine, with a secret of their own, and stops them with Ctrl-C: a cluster to look at.
set -euo pipefail
cd "$(dirname "$0")/.."

HOLDFAST_CLUSTER_SECRET=$(head -c 24 /dev/urandom | base64 | tr -d '+/=')
export HOLDFAST_CLUSTER_SECRET
export HOLDFAST_PEERS=n1=http://127.0.0.1:7621,n2=http://127.0.0.1:7631,n3=http://127.0.0.1:7641

pids=()
stop() {
    trap - EXIT INT TERM
    kill "${pids[@]}" 2>/dev/null || true
    wait
}
trap stop EXIT INT TERM

for i in 1 2 3; do
    port=$((7610 + 10 * i))
    HOLDFAST_NODE=n$i HOLDFAST_NATIVE_ADDR=127.0.0.1:$port HOLDFAST_HTTP_ADDR=127.0.0.1:$((port + 1)) bin/holdfastd &
    pids+=($!)
    echo "n$i: TCP 127.0.0.1:$port, HTTP http://127.0.0.1:$((port + 1)), process $!"
done
wait
