#!/usr/bin/env bash
# Made this corpus, once, in an empty folder: make.sh PROGRAM SOURCE, with the program and the checkout of commit f60d7e4. Its languages are in
# a folder .tools above, and in SPINSIM_ASC.
set -euo pipefail
spinsim=$1 source=$2
mkdir modules

# Modules: one of each language, and the libraries that have changed since.
"$spinsim" handler new tinygo-handler
"$spinsim" handler build tinygo-handler -o modules/tinygo.wasm
for lang in c cpp rust assemblyscript; do
	"$spinsim" handler new --lang $lang $lang
	"$spinsim" handler build $lang
	cp $lang/$lang.wasm modules/
done
mv c/packets.txt c/expected.txt .
mv c/scenario.yaml modules/
cp "$source"/examples/first-handler/first-handler.wasm "$source"/examples/histogram/histogram.wasm modules/
for library in accumulate bcast count pingpong sum txlog work; do cp "$source/handlers/$library/$library.wasm" modules/; done
rm -r c cpp rust assemblyscript tinygo-handler

# Scenarios and profiles.
for name in broadcast count sizes; do "$spinsim" scenario example $name >$name.yaml; done
cp "$source/examples/histogram/histogram.yaml" modules/
for name in spin-int exanest exanest-qfdb ib-npf; do
	printf 'base: %s\nhpu: {clock: 2GHz}\n' $name >mine.yaml
	"$spinsim" profile mine.yaml >whole-$name.yaml
done
rm mine.yaml
printf 'base: spin-int\nhpu: {cores: 2, costs: a15}\n' >base.yaml
cp "$source"/docs/profiles/{spin-int-os,spin-int-smmu,spin-dis-nvme,part22-sum}.yaml .

# Files of loads.
"$spinsim" goal gen halo2d --ranks 4 >halo.goal
"$spinsim" goal convert --to binary halo.goal >halo.bin
"$spinsim" storage generate oltp --requests 20 -o oltp.spc
printf '0 1 3\n1 2\n2 3 7\n' >edges.txt

# Documents, of each command that has provenance, and kept results.
json() {
	local out=$1
	shift
	"$spinsim" "$@" --format json >"$out"
}
json compare.json compare pingpong --size 8,8KiB --profile spin-int,exanest --mode rdma,spin-stream
json compare-set.json compare bcast --ranks 4 --size 8 --set hpu.cores=2,4
json waterfall.json compare bcast --ranks 4 --size 8 --waterfall spin-int-sc17,spin-int
json breakdown.json compare accumulate --size 4KiB --profile spin-dis --breakdown
json npf.json compare pagefault --experiment frequency --size 16KiB --frequency 40%
json handler.json compare pingpong --handler modules/pingpong.wasm --size 8 --mode spin-stream
json run.json run count.yaml
json run-sizes.json run sizes.yaml
json osu.json osu latency -m 8:8
json osu-allreduce.json osu allreduce --ranks 4 -m 8:8
json goal-model.json goal run halo.goal
json goal-nodes.json goal run halo.bin --on nodes
json handler-run.json handler run modules/c.wasm --packets packets.txt
json graph.json graph run edges.txt --kernel sssp --ranks 2
json storage.json storage run oltp.spc --profile spin-int --requests 5
json explain.json explain count.yaml
json advise.json advise count --profile spin-int
json topology.json topology exanest
json topology-path.json topology path M1QAF2 M3QBF4
"$spinsim" compare pingpong --size 8 --profile spin-int --resume kept >/dev/null
"$spinsim" compare bcast --profile exanest --ranks 4 --size 8 --mode rdma --links loads.json >/dev/null
json topology-load.json topology exanest --load loads.json
