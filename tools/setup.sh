#!/usr/bin/env bash
# Installs what the tests need beyond Go and make, where it is missing: as root, with apt. Where it cannot, it says
# what is missing and goes on: the tests that need it skip themselves, and tools/test.sh lists them.
set -euo pipefail

needed=( # command:package
    gcc:gcc # the race detector links with it
    git:git # the version in the binaries
    chromium:chromium # the dashboard's tests look at its pages in it
    fc-match:fontconfig # the pages need a font in it
    ip:iproute2 # the networks that clusters are tested in
    nft:nftables # and how they are cut
)

missing=()
for pair in "${needed[@]}"; do
    command -v "${pair%%:*}" >/dev/null || missing+=("${pair#*:}")
done
if ((${#missing[@]} == 0)); then exit 0; fi

if ((EUID != 0)) || ! command -v apt-get >/dev/null; then
    echo "setup: missing ${missing[*]}, and no root with apt to install them: what needs them is skipped" >&2
    exit 0
fi
echo "setup: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get update -q </dev/null
apt-get install -qy --no-install-recommends "${missing[@]}" libc6-dev </dev/null
