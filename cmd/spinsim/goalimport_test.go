package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// chakraTrace is a trace of version 0.0.4 with one computation of 3 µs, whose
// attribute x has no meaning.
const chakraTrace = "\x07\x0a\x050.0.4\x0b\x08\x01\x18\x04\x38\x03\x52\x03\x0a\x01x"

// liballprofTrace is a trace of a rank that does nothing.
const liballprofTrace = "MPI_Init:-:1:2:10\nMPI_Finalize:12:-\n"

// dumpiTrace is one of dumpi's.
const dumpiTrace = "MPI_Init entering at walltime 1.000000000, cputime 0.1 seconds in thread 0.\nMPI_Init returning at walltime 1.000000010, cputime 0.1 seconds in thread 0.\n"

// collectiveTrace is a trace with an allreduce of 1 MiB, encoded as in
// ASTRA-sim's example.
const collectiveTrace = "\x07\x0a\x050.0.4\x35\x12\x01a\x18\x07\x52\x0e\x0a\x09is_cpu_op\xd8\x01\x00\x52\x0d\x0a\x09comm_type\x48\x00\x52\x0f\x0a\x09comm_size\x48\x80\x80\x40"

// A trace becomes a sealed schedule; what is left out stands on the standard
// error, and --quiet does not hide it.
func TestImportChakra(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(name, text string) { require.NoError(t, os.WriteFile(name, []byte(text), 0o600)) }
	write("c.0.et", chakraTrace)
	for _, name := range []string{"a.0.et", "a.1.et", "a.2.et", "a.3.et"} {
		write(name, collectiveTrace)
	}
	write("system.json", `{"preferred-dataset-splits": 2, "endpoint-delay": 10, "all-reduce-implementation": ["ring"], "local-mem-bw": 1000}`)
	write("other.json", `{"unknown": 2}`)
	var out, errs bytes.Buffer
	require.Equal(t, exitOK, run([]string{"goal", "import", "chakra", "c.0.et"}, &out, &errs))
	require.Contains(t, out.String(), "\ncalc 3000\n")
	require.Equal(t, "spinsim: attributes of nodes ignored: x\n", errs.String())

	files := []string{"goal", "import", "chakra", "a.3.et", "a.1.et", "a.0.et", "a.2.et", "-o", "a.goal"}
	errs.Reset()
	require.Equal(t, exitOK, run(append(files, "--system", "system.json"), &out, &errs))
	require.Empty(t, errs.String())
	// 2 chunks x (6 messages + 7 delays, 3 of them with a reduction of 131,072 bytes)
	finish := output(t, "goal", "run", "a.goal", "--L", "1000", "--o", "0", "--g", "0", "--G", "0", "--S", "1000000")
	require.Contains(t, string(finish), "14,498  ns  last rank finishes")
	require.Equal(t, exitOK, run(append(files, "--system", "system.json", "--collective", "allreduce=tree"), &out, &errs))

	require.NoError(t, os.Remove("a.goal"))
	for _, x := range []struct {
		more []string
		want string
	}{
		{[]string{"a.7.et"}, "a.7.et: with 5 files, the NPUs are expected to be 0 to 4; a file is missing"},
		{[]string{"--system", "other.json"}, "--system: other.json:1: unknown: unknown field"},
		{[]string{"--system", "none.json"}, "--system: open none.json: no such file"},
		{[]string{"--groups", "other.json"}, "--groups: other.json: json: "},
		{[]string{"--collective", "bcast=ring"}, `--collective: "bcast=ring", expected COLLECTIVE=ALGORITHM`},
		{[]string{"--to", "x"}, `--to: "x", expected text or binary`},
	} {
		out.Reset()
		errs.Reset()
		require.Equal(t, exitInput, run(append(files, x.more...), &out, &errs), x.more)
		require.Contains(t, errs.String(), "spinsim: "+x.want)
		require.NoFileExists(t, "a.goal")
	}
	write("a.2.et", collectiveTrace[:40])
	errs.Reset()
	require.Equal(t, exitInput, run(files, &out, &errs))
	require.Equal(t, "spinsim: a.2.et: offset 40: the file ends after 31 of the 53 bytes of a message\n", errs.String())
	require.NoFileExists(t, "a.goal")
}
