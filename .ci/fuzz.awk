# Says whether the output of go test -fuzz, which has ended with a failure, is nothing but Go's race at the end of -fuzztime: status 0 if so.
#
# When the time is over the coordinator may take the end of its own context for an error of the target and print "context deadline exceeded"
# under the name of the target, and nothing else (golang/go#75804, mended in Go 1.27). What has really been found has an input that was written
# to testdata/fuzz, a seed that fails, or other words; a worker that died or hangs says so.

/^--- FAIL: Fuzz[A-Za-z0-9_]+ \([0-9.]+s\)$/ { failures++; inside = 1; next }
inside && /^(FAIL|exit status 1|ok|PASS)/ { inside = 0 }
inside && $0 == "    context deadline exceeded" { deadlines++; next }
inside { other = 1 }
/Failing input written|--- FAIL: .*\/|^panic: |fatal error:|terminated unexpectedly|\[build failed\]|\[setup failed\]/ { other = 1 }
END { exit !(failures == 1 && deadlines == 1 && !other) }
