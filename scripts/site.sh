#!/usr/bin/env bash
# Makes a website of the documents in a folder, .site by default, with every link checked: a page that names what is not there is an error.
#
#   scripts/site.sh [FOLDER]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
go run ./internal/site "${1:-.site}"
