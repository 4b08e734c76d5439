#!/usr/bin/env bash
# Makes an OCI image from a folder with a static program spinsim, without a daemon, as a layout in an archive (OCI image layout 1.0):
#
#   scripts/oci-image.sh FOLDER IMAGE.tar VERSION ARCHITECTURE SECONDS
#
# The folder becomes /spinsim of the image, which has nothing else; the program is the entry point, /work its working directory. SECONDS since
# 1970 is the time of all files. Equal arguments give equal bytes. scripts/release.sh calls it.
set -euo pipefail
folder=$1 image=$2 version=$3 arch=$4 epoch=$5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/image/work" "$work/layout/blobs/sha256"
cp -R "$folder" "$work/image/spinsim"

# pack FOLDER: an archive without names of users, times and the order of a disk.
pack() { tar -C "$1" --sort=name --mtime="@$epoch" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX -cf - .; }

digest() { sha256sum "$1" | cut -d' ' -f1; }

# blob FILE TYPE: moves the file into the layout and prints its descriptor.
blob() {
	local sum size
	sum=$(digest "$1") size=$(stat -c %s "$1")
	mv "$1" "$work/layout/blobs/sha256/$sum"
	printf '{"mediaType":"%s","digest":"sha256:%s","size":%d' "$2" "$sum" "$size"
}

readonly type=application/vnd.oci.image
pack "$work/image" >"$work/layer"
plain=$(digest "$work/layer")
gzip -n9 "$work/layer"
layer=$(blob "$work/layer.gz" $type.layer.v1.tar+gzip)
created=$(date -u -d "@$epoch" +%Y-%m-%dT%H:%M:%SZ)
printf '{"created":"%s","architecture":"%s","os":"linux","config":{"Entrypoint":["/spinsim/spinsim"],"WorkingDir":"/work","Labels":{"org.opencontainers.image.version":"%s","org.opencontainers.image.licenses":"Apache-2.0"}},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' \
	"$created" "$arch" "$version" "$plain" >"$work/config"
config=$(blob "$work/config" $type.config.v1+json)
printf '{"schemaVersion":2,"mediaType":"%s","config":%s},"layers":[%s}]}' $type.manifest.v1+json "$config" "$layer" >"$work/manifest"
manifest=$(blob "$work/manifest" $type.manifest.v1+json)
printf '{"schemaVersion":2,"mediaType":"%s","manifests":[%s,"platform":{"architecture":"%s","os":"linux"},"annotations":{"org.opencontainers.image.ref.name":"spinsim:%s"}}]}' \
	$type.index.v1+json "$manifest" "$arch" "$version" >"$work/layout/index.json"
printf '{"imageLayoutVersion":"1.0.0"}' >"$work/layout/oci-layout"
pack "$work/layout" >"$image"
