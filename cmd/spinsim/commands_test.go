package main

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/examples/scenarios"
	"github.com/spinsim/spinsim/handlers/count"
)

// A documented command is a line of a code block, or code in a sentence, that
// begins with spinsim (or with the way to run it from the repository).
var (
	blockLine  = regexp.MustCompile(`^(?:    |\$ )?((?:(?:go run \./cmd/)?spinsim|cd) .*)$`)
	inSentence = regexp.MustCompile("`(spinsim [^`]+)`")
	footer     = regexp.MustCompile(`^spinsim (?:devel|v[0-9])`) // of a table that is shown
)

// mentions name commands or stand for many; nobody types them as they are.
var mentions = []string{
	"spinsim compare … --waterfall A,B", "spinsim compare … --handler my.wasm", "spinsim handler new, build, inspect, run", "spinsim explain FILE",
	"spinsim handler new NAME", "spinsim handler new NAME --lang c", "spinsim rerun", "spinsim run", "spinsim goal",
	"spinsim goal import chakra trace.*.et --system system.json",
	"spinsim mpirun -np 2,4,8 --pages present,touch,pia --profile exanest -- lmp -in in.lj -log none",
	"spinsim mpirun -np 2,4,8 --allreduce host,offload-doubling -- lmp -in in.lj -log none",
	"spinsim mpirun -np 16 --ranks-per-node 4 --profile exanest -- lmp -in in.lj", "spinsim mpirun", "spinsim osu", "spinsim serve",
}

// documents is for the step documents of .ci/run: go test alone takes the
// newcomer's path.
var documents = flag.Bool("documents", false, "run the commands of all documents, and those of the pages of figures")

var everything = flag.Bool("everything", false, "run documented and shown commands that take long as they are written, as .ci/run deep does")

// long maps commands that take many seconds to what runs instead without
// -everything.
var long = map[string]string{
	"spinsim identify part":                        "spinsim identify part --only E15.1 --longest 100ms",
	"spinsim compare kv":                           "spinsim compare kv --workload C --clients 2 --ops 5 --records 50",
	"spinsim compare bcast":                        "spinsim compare bcast --ranks 4,16",
	"spinsim osu latency --path inter-mezz:3,1,2":  "spinsim osu latency --path inter-mezz:3,1,2 -m 8:64",
	"spinsim osu bw -m 64:65536 -W 16 --breakdown": "spinsim osu bw -m 64:256 -W 16 --breakdown",
	"spinsim goal proxies":                         "spinsim goal proxies --app pop --iterations 1",
	"spinsim compare graph --scale 20 --ranks 64 --kernel bfs --mode spin --profile spin-int": "spinsim compare graph --scale 6 --ranks 64 --kernel bfs --mode spin --profile spin-int",
	"spinsim compare exanet": "spinsim compare exanet --size 8",
	"spinsim compare exanet --handler rdma.engine=mine/mine.wasm": "spinsim compare exanet --size 8 --handler rdma.engine=mine/mine.wasm",
	"spinsim compare raid5":                                    "spinsim compare raid5 --size 64KiB",
	"spinsim compare hpus":                                     "spinsim compare hpus --hpus 4 --size 512",
	"spinsim compare datatype":                                 "spinsim compare datatype --block 64KiB",
	"spinsim compare matching":                                 "spinsim compare matching --app pop --iterations 1",
	"spinsim compare allreduce":                                "spinsim compare allreduce --ranks 16 --size 256",
	"spinsim compare pagefault":                                "spinsim compare pagefault --size 4KiB",
	"spinsim compare credits --plot credits.svg":               "spinsim compare credits --ranks 8 --benchmark alltoall --size 4KiB --plot credits.svg",
	"spinsim compare bcast --format json > results.json":       "spinsim compare bcast --ranks 4,16 --format json > results.json",
	"spinsim compare npf-latency":                              "spinsim compare npf-latency --runs 5 --size 4KiB",
	"spinsim compare bcast --waterfall spin-int-sc17,spin-int": "spinsim compare bcast --waterfall spin-int-sc17,spin-int --ranks 4 --size 8",
}

// documentedCommands returns the commands in a text, in order.
func documentedCommands(text string) (list []string) {
	block := false
	text = strings.ReplaceAll(text, "\\\n", " ") // a command on two lines
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "```") {
			block = !block
			continue
		}
		if block || strings.HasPrefix(line, "    ") {
			if m := blockLine.FindStringSubmatch(line); m != nil && !footer.MatchString(m[1]) {
				list = append(list, m[1])
			}
			continue
		}
		for _, m := range inSentence.FindAllStringSubmatch(line, -1) {
			list = append(list, m[1])
		}
	}
	return list
}

// porting is the document whose commands need a compiler, because they compile
// the code of others. TestToolchainPorting runs them.
var porting = filepath.Join("docs", "porting.md")

// A reader can type every command of README.md, RATIONALE.md, docs and the
// examples as written, one after the other, in a folder with the files that it
// mentions. Compilers are not needed: a built module takes the place of their
// output. Without -documents only those of README.md and docs/README.md are
// run.
func TestDocumentedCommands(t *testing.T) {
	t.Parallel()
	repository, err := filepath.Abs("../..")
	require.NoError(t, err)
	var files []string
	for _, pattern := range []string{"*.md", "docs/*.md", "examples/*/*.md", "portals/*.md", "goal/*.md"} {
		found, err := filepath.Glob(filepath.Join(repository, pattern))
		require.NoError(t, err)
		files = append(files, found...)
	}
	used := map[string]bool{}
	total := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var commands []string
		for _, c := range documentedCommands(string(text)) {
			used[c] = true
			c = strings.Replace(c, "go run ./cmd/spinsim", "spinsim", 1)
			plain := strings.Join(strings.Fields(strings.Split(c, "#")[0]), " ")
			used[plain] = true
			// those are run elsewhere
			if !slices.Contains(mentions, plain) && !strings.Contains(string(text), "<!-- output: "+plain+" -->") {
				commands = append(commands, c)
			}
		}
		if len(commands) == 0 {
			continue
		}
		total += len(commands)
		name, err := filepath.Rel(repository, file)
		require.NoError(t, err)
		if name == porting || !*documents && !*everything && filepath.Base(name) != "README.md" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			module := filepath.Join(repository, "cmd", "spinsim", "testdata", "docs", "filter.wasm")
			dir := documentedFiles(t, filepath.Dir(file))
			if own, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*.wasm")); err == nil && len(own) == 1 {
				module = own[0]
				if strings.Contains(strings.Join(commands, "\n"), "spinsim handler build") {
					// who begins has none
					require.NoError(t, os.Remove(filepath.Join(dir, filepath.Base(module))))
				}
			}
			runDocumented(t, dir, repository, stubCompiler(t, module), commands)
		})
	}
	require.Greater(t, total, 40)
	for _, m := range mentions {
		require.True(t, used[m], "%q is mentioned nowhere", m)
	}
	for c := range long {
		require.True(t, used[c], "%q is documented nowhere", c)
	}
}

// A program makes no commands but the one that it was called with.
func TestNamedCommandIsMade(t *testing.T) {
	for _, words := range []string{"verify", "-q verify a.csv", "--quiet handler run"} {
		require.Len(t, rootCommand(strings.Fields(words)...).Commands(), 1, words)
	}
}

// foreignFlags are flags of other programs that documents mention.
var foreignFlags = map[string]bool{"--array": true} // of sbatch

// Every flag that a document mentions is a flag of some command.
func TestDocumentedFlags(t *testing.T) {
	t.Parallel()
	known := map[string]bool{"--help": true, "--version": true}
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			visit(sub)
		}
		c.Flags().VisitAll(func(f *pflag.Flag) { known["--"+f.Name] = true })
		c.PersistentFlags().VisitAll(func(f *pflag.Flag) { known["--"+f.Name] = true })
	}
	visit(rootCommand())
	named, total := regexp.MustCompile(`(?m)(?:^|[^-\w])(--[a-z][\w-]*)`), 0
	for _, pattern := range []string{"README.md", "RATIONALE.md", "docs/*.md", "examples/*/*.md"} {
		files, err := filepath.Glob(filepath.Join("..", "..", pattern))
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, m := range named.FindAllStringSubmatch(string(text), -1) {
				require.True(t, known[m[1]] || foreignFlags[m[1]], "%s: %s is a flag of no command", file, m[1])
				total++
			}
		}
	}
	require.Greater(t, total, 300)
}

// documentedFiles makes a folder with the files that commands read but do not
// make. The commands of an example find the example's own files.
func documentedFiles(t *testing.T, of string) string {
	dir := t.TempDir()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module documented\n\ngo 1.26.0\n\n"+
		"require github.com/spinsim/spinsim v0.0.0\n\nreplace github.com/spinsim/spinsim => "+root+"\n"), 0o666))
	if filepath.Base(filepath.Dir(of)) == "examples" {
		require.NoError(t, os.CopyFS(filepath.Join(dir, "examples"), os.DirFS(filepath.Dir(of))))
		return filepath.Join(dir, "examples", filepath.Base(of))
	}
	profiles := filepath.Join("docs", "profiles")
	require.NoError(t, os.CopyFS(filepath.Join(dir, profiles), os.DirFS(filepath.Join(root, profiles))))
	example, err := scenarios.Find("count")
	require.NoError(t, err)
	stencil, err := os.ReadFile(filepath.Join("..", "..", "internal", "goal", "proxy", "apps", "milc.yaml"))
	require.NoError(t, err)
	for name, content := range map[string][]byte{
		"my.wasm": count.Library.Wasm, "scenario.yaml": example.Text, "experiment.yaml": example.Text, "stencil.yaml": stencil,
		"script.txt":    []byte("procs 2\n1: pt 0\n1: me a pt=0 bits=7 start=0 len=8 OP_PUT\n0: md m len=8\n0: put m len=8 to=1 bits=7\n"),
		"file.goal":     []byte("num_ranks 2\nrank 0 {\nsend 8b to 1\n}\nrank 1 {\nrecv 8b from 0\n}\n"),
		"guest/main.go": []byte("package main\n"),
		"detours.txt":   []byte("0 100\n1000 50\n"),
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o777))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o666))
	}
	return dir
}

// stubCompiler makes a program that takes the arguments of TinyGo or clang and
// writes a given module. As clang it writes, with debugging information, the
// only handler in C that a document builds; for the source of library rdma as
// TinyGo it writes that library's module.
func stubCompiler(t *testing.T, module string) string {
	name := filepath.Join(t.TempDir(), "compiler")
	debug, err := filepath.Abs(filepath.Join("testdata", "docs", "c-filter.debug.wasm"))
	require.NoError(t, err)
	engine, err := filepath.Abs(filepath.Join("..", "..", "handlers", "rdma", "rdma.wasm"))
	require.NoError(t, err)
	script := "#!/bin/sh\nm='" + module + "'\ncase \"$*\" in *-Wl,*) m='" + debug + "';; esac\n" +
		"if grep -qs '//spin:library rdma ' main.go; then m='" + engine + "'; fi\n" +
		"while [ \"$1\" != -o ]; do shift; done\ncp \"$m\" \"$2\"\n"
	require.NoError(t, os.WriteFile(name, []byte(script), 0o777))
	return name
}

// runDocumented types commands into one shell.
func runDocumented(t *testing.T, dir, repository, compiler string, commands []string) {
	var script bytes.Buffer
	for _, c := range commands {
		plain, _, _ := strings.Cut(c, " #")
		if short, ok := long[strings.TrimSpace(plain)]; ok && !*everything {
			c = short
		}
		c = strings.Replace(c, "handler new ", "handler new --spinsim '"+repository+"' ", 1)
		script.WriteString("echo \"> \"'" + strings.ReplaceAll(c, "'", `'\''`) + "'\n" + c + "\n")
	}
	shell := exec.Command("/bin/sh", "-e")
	shell.Dir, shell.Stdin = dir, &script
	shell.Env = append(os.Environ(), "SPINSIM_TINYGO="+compiler, "SPINSIM_CLANG="+compiler)
	out, err := shell.CombinedOutput()
	require.NoError(t, err, "the last command failed:\n%s", out[max(0, len(out)-2000):])
}
