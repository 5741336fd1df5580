#!/usr/bin/env bash
# Starts three nodes on this machine, with a secret of their own, and stops them with Ctrl-C: a cluster to look at. The
# settings of each stand in bin/cluster/, so that one that was killed can be brought back.
set -euo pipefail
cd "$(dirname "$0")/.."

secret=$(head -c 24 /dev/urandom | base64 | tr -d '+/=')
umask 077
mkdir -p bin/cluster
for i in 1 2 3; do
    port=$((7610 + 10 * i))
    cat >"bin/cluster/n$i.env" <<EOF
HOLDFAST_NODE=n$i
HOLDFAST_PEERS=n1=http://127.0.0.1:7621,n2=http://127.0.0.1:7631,n3=http://127.0.0.1:7641
HOLDFAST_CLUSTER_SECRET=$secret
HOLDFAST_NATIVE_ADDR=127.0.0.1:$port
HOLDFAST_HTTP_ADDR=127.0.0.1:$((port + 1))
EOF
done

pids=()
stop() {
    trap - EXIT INT TERM
    kill "${pids[@]}" 2>/dev/null || true
    wait
}
trap stop EXIT INT TERM

for i in 1 2 3; do
    (
        set -a
        # shellcheck disable=SC1090 # written above
        . "bin/cluster/n$i.env"
        exec bin/holdfastd
    ) &
    pids+=($!)
done

sleep 1
for i in 1 2 3; do
    if ! kill -0 "${pids[i - 1]}" 2>/dev/null; then
        echo "n$i could not start, see above. Is another node running, of make run for instance? Stop it first." >&2
        exit 1
    fi
    port=$((7610 + 10 * i))
    echo "n$i: TCP 127.0.0.1:$port, http://127.0.0.1:$((port + 1))/, kill it with: kill -9 ${pids[i - 1]}"
done
echo "bring one back, in another terminal, with: (set -a; . bin/cluster/n1.env; bin/holdfastd)"
wait || true
