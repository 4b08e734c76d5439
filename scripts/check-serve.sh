#!/usr/bin/env bash
# The page of spinsim serve in Debian's Chromium: scripts/check-serve.sh [FOLDER] leaves screenshots in the folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folder=${1:-$(mktemp -d)}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
go build -o "$folder/spinsim" ./cmd/spinsim
rm -rf "$folder/browser"
cp -r internal/page/testdata/browser "$folder/browser"
(cd "$folder/browser" && npm ci --ignore-scripts --no-audit --no-fund >/dev/null)
node "$folder/browser/serve.mjs" "$folder/spinsim" handlers/pingpong/pingpong.wasm "$folder"
