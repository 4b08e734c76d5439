#!/usr/bin/env bash
# Pages of spinsim report in Debian's Chromium: scripts/check-report.sh [FOLDER] leaves pages and screenshots in the folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folder=${1:-$(mktemp -d)}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
browser=$PWD/internal/page/testdata/browser
go build -o "$folder/spinsim" ./cmd/spinsim
rm -rf "$folder/browser"
cp -r "$browser" "$folder/browser"
(cd "$folder/browser" && npm ci --ignore-scripts --no-audit --no-fund >/dev/null)
cd "$folder"
spinsim=./spinsim
$spinsim compare bcast --ranks 4,64,1024 --mode rdma,p4,spin-stream --format json >bcast.json
$spinsim compare bcast --waterfall spin-int-sc17,spin-int --ranks 4 --size 8 --format json >waterfall.json
$spinsim compare pagefault --size 4KiB --format json >pagefault.json
$spinsim scenario example count >count.yaml
$spinsim run count.yaml --format json >count.json
printf 'base: spin-int\nname: "<script>alert(1)</script><img src=x onerror=alert(2)>"\n' >enemy.yaml
$spinsim compare pingpong --profile enemy.yaml --size 8,64,512 --format json >enemy.json
$spinsim report bcast.json -o bcast.html
$spinsim report pagefault.json -o pagefault.html
$spinsim report enemy.json -o hostile.html
$spinsim report bcast.json waterfall.json pagefault.json count.json enemy.json -o all.html
node browser/check.mjs "$folder" bcast.html pagefault.html hostile.html all.html "${@:2}"
