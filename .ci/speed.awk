# Compares the output of go test -bench (first file) with the promises for one
# package (second file, variable package). Status 1 if one is broken or missing.

FNR == 1 { file++ }

file == 2 && $1 == "calibration" { reference = $2 }

file == 1 && /^Benchmark/ {
	name = $1
	sub(/-[0-9]+$/, "", name)
	for (i = 3; i < NF; i += 2) {
		key = name SUBSEP $(i + 1)
		if (!(key in best) || $i + 0 < best[key]) best[key] = $i + 0
	}
}

file == 2 && !/^#/ && $1 == package {
	if ($3 ~ /^Benchmark/) {
		if (!(($2, "ns/op") in best) || !(($3, "ns/op") in best)) { missing($2 " or " $3); next }
		check($2 " / " $3, best[$2, "ns/op"] / best[$3, "ns/op"], $4, 1.5)
	} else {
		if (!(($2, $3) in best)) { missing($2 " " $3); next }
		if ($3 ~ /^ns\// && (!("BenchmarkCalibration" SUBSEP "ns/op" in best))) { missing("BenchmarkCalibration"); next }
		if ($3 ~ /^ns\//) check($2 " " $3, best[$2, $3] * reference / best["BenchmarkCalibration", "ns/op"], $4, 2.5)
		else check($2 " " $3, best[$2, $3], $4, $3 ~ /^x-/ ? 1 : 4) # ratios are measured side by side
	}
}

function check(what, got, promise, noise,    verdict) {
	verdict = ""
	if (got > promise * noise) {
		verdict = "  BROKEN"
		broken = 1
	}
	printf("%-66s %8.2f  promised %g, limit %g%s\n", what, got, promise, promise * noise, verdict)
}

function missing(what) {
	printf("%-66s  MISSING: no benchmark measures this promise\n", what)
	broken = 1
}

END { exit broken + 0 }
