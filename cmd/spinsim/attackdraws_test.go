package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/internal/manifest"
	"github.com/spinsim/spinsim/runtime"
)

// attackKinds are what a draw may be.
var attackKinds = []struct {
	name string
	make func(d *attempt)
}{
	{"spoiled file", (*attempt).spoiledFile},
	{"spoiled module", (*attempt).spoiledModule},
	{"scenario on engines", (*attempt).scenarioOnEngines},
	{"edited results", (*attempt).editedResults},
	{"signal", (*attempt).signal},
	{"kill", (*attempt).kill},
	{"full disk", (*attempt).fullDisk},
	{"little memory", (*attempt).littleMemory},
	{"edited artefact", (*attempt).editedArtefact},
}

// case_ writes the files of a drawn case.
func (d *attempt) someCase() attackCase {
	c := d.cases[d.rng.IntN(len(d.cases))]
	for _, name := range sorted(c.files) {
		d.write(name, c.files[name])
	}
	return c
}

// spoiledFile runs a command on a file of which something is changed.
func (d *attempt) spoiledFile() {
	c := d.someCase()
	d.write(c.spoiled, spoil(d.rng, c.files[c.spoiled]))
	d.twice(withLimits(c.args))
}

// withLimits adds limits to a command that has them.
func withLimits(args []string) []string {
	found, _, err := rootCommand(args...).Find(args)
	if err != nil {
		return args
	}
	for _, limit := range [][2]string{{"time-limit", "10s"}, {"event-limit", "200000"}, {"memory-limit", "1GiB"}} {
		if found.Flags().Lookup(limit[0]) != nil && !slices.Contains(args, "--"+limit[0]) {
			args = append(slices.Clone(args), "--"+limit[0], limit[1])
		}
	}
	return args
}

// twice runs a command twice. The second time it makes the same.
func (d *attempt) twice(args []string) {
	first := d.run(args, nil, nil)
	d.kind = fmt.Sprintf("%s, status %d", d.kind, first.status)
	if first.limited || first.status == exitInput || first.status == -1 {
		return
	}
	second := d.run(args, nil, nil)
	if !second.limited && second.status >= 0 {
		d.same(&first, &second)
	}
}

// same compares two runs of a command.
func (d *attempt) same(a, b *outcome) {
	if a.status != b.status || a.out != b.out || a.errs != b.errs {
		d.find("spinsim %q and spinsim %q differ: status %d and %d\n%s", a.args, b.args, a.status, b.status, firstDifference(a.out+a.errs, b.out+b.errs))
	}
	for _, name := range sorted(a.files) {
		if is, ok := b.files[name]; ok && is != a.files[name] {
			d.find("spinsim %q writes another %s the second time\n%s", a.args, name, firstDifference(a.files[name], is))
		}
	}
}

func firstDifference(a, b string) string {
	k := 0
	for k < min(len(a), len(b)) && a[k] == b[k] {
		k++
	}
	around := func(s string) string { return s[max(0, min(k, len(s))-200):min(len(s), k+100)] }
	return fmt.Sprintf("at byte %d:\n%q\n%q", k, around(a), around(b))
}

// spoiledModule looks at a module of which something is changed, and runs it.
func (d *attempt) spoiledModule() {
	modules, err := attackModules()
	require.NoError(d.t, err)
	d.write("m.wasm", string(spoilModule(d.rng, modules[d.rng.IntN(len(modules))], attackSections[d.rng.IntN(len(attackSections))])))
	commands := []string{"handler inspect m.wasm", "handler run ./m.wasm --hex 00*3000", "handler run ./m.wasm --hex 00*700 --race", "handler profile ./m.wasm --hex 00*300"}
	d.twice(withLimits(strings.Fields(commands[d.rng.IntN(len(commands))])))
}

// engines are the engines of this build.
func engines() (list []string) {
	for _, name := range []string{"wazero", "wasmtime"} {
		if runtime.CheckEngine(name) == nil {
			list = append(list, name)
		}
	}
	return list
}

// scenarioOnEngines runs a whole scenario on each engine. Exit status, tables,
// messages with the places of traps, timeline and capture are the same, byte
// by byte.
func (d *attempt) scenarioOnEngines() {
	names := handlers.Names()
	const tries = 8 // most spoiled modules are refused
	var first outcome
	for range tries {
		l, err := handlers.Builtin(names[d.rng.IntN(len(names))])
		require.NoError(d.t, err)
		wasm := l.Wasm
		if d.rng.IntN(4) > 0 {
			wasm = spoilModule(d.rng, wasm, code)
		}
		d.write("m.wasm", string(wasm))
		d.write("s.yaml", drawScenario(d.rng, l.Manifest()))
		if first = d.runOn(engines()[0]); first.status != exitInput {
			break
		}
	}
	d.kind = fmt.Sprintf("%s, status %d", d.kind, first.status)
	// the same engine again, if there is no other
	other := append(engines(), engines()[0])[1]
	if e := d.runOn(other); !first.limited && !e.limited {
		d.same(&first, &e)
	}
}

func (d *attempt) runOn(engine string) outcome {
	e := d.run([]string{"-q", "run", "s.yaml", "--engine", engine, "--format", "json", "--trace", "t.json", "--pcap", "c.pcapng", "--event-limit", "1000000"}, nil, nil)
	e.out, e.errs = withoutEngine(e.out), withoutEngine(e.errs)
	for name := range e.files { //lint:maporder each by itself
		e.files[name] = withoutEngine(e.files[name])
	}
	return e
}

// sweptArgs is a sweep whose results are kept.
var sweptArgs = strings.Fields("compare pingpong --profile spin-int --mode rdma,spin-stream --size 8,64,512,4KiB --format csv --resume kept")

// editedResults changes what a sweep has kept. Afterwards the sweep refuses it,
// or its table is the same.
func (d *attempt) editedResults() {
	whole := d.run(sweptArgs, nil, nil)
	if whole.status != exitOK {
		d.find("%q: status %d: %s", sweptArgs, whole.status, whole.errs)
		return
	}
	kept := filepath.Join("kept", "points.ndjson")
	d.write(kept, spoil(d.rng, whole.files[kept]))
	again := d.run(sweptArgs, nil, nil)
	d.kind = fmt.Sprintf("%s, status %d", d.kind, again.status)
	if again.status == exitOK && again.out != whole.out {
		d.find("a kept result was edited, and the table is another one:\n%s", firstDifference(whole.out, again.out))
	}
}

// interrupted starts a case with outputs and sends a signal after some time.
func (d *attempt) interrupted(s os.Signal, args []string) outcome {
	return d.run(args, nil, func(c *exec.Cmd) {
		pause := time.Duration(d.rng.Int64N(int64(150 * time.Millisecond)))
		time.AfterFunc(pause, func() { _ = c.Process.Signal(s) }) // it may have ended
	})
}

// outputs returns a command with files for its outputs, which exist.
func (d *attempt) outputs() []string {
	for _, one := range [][2]string{{"ring.yaml", ring}, {"two.graph", "0 1\n"}, {"oltp.spc", "0,0,4096,w,0.0\n0,8,4096,r,0.001\n"}} {
		d.write(one[0], one[1])
	}
	lines := []string{
		"run ring.yaml --trace t.json --pcap c.pcapng --links l.json",
		"compare bcast --ranks 16 --profile spin-int --format csv --plot p.svg",
		"compare pingpong --profile spin-int --mode rdma --size 8 --samples s.csv --trace t.pftrace --pcap c.pcapng --links l.json",
		"goal gen alltoall-linear --ranks 100 -o a.goal",
		"graph run two.graph --profile spin-int --kernel bfs --ranks 2 --mode host --plot p.svg",
		"storage generate oltp -o new.spc",
	}
	args := strings.Fields(lines[d.rng.IntN(len(lines))])
	for i, arg := range args {
		if i > 0 && slices.Contains([]string{"--trace", "--pcap", "--links", "--plot", "--samples", "-o"}, args[i-1]) {
			d.write(arg, old)
		}
	}
	return args
}

// old is what the outputs of a command hold before it runs.
const old = "old"

// wholeOutputs checks that each output is the old one, or that of a run which
// nobody has interrupted, and that no other file is left.
func (d *attempt) wholeOutputs(args []string, e *outcome, wantOld bool) {
	whole := d.run(args, nil, nil)
	if whole.status != exitOK {
		d.find("%q: status %d: %s", args, whole.status, whole.errs)
	}
	for _, name := range sorted(e.files) {
		want, known := whole.files[name]
		switch is := e.files[name]; {
		case !known:
			d.find("spinsim %q, status %d, leaves %s", args, e.status, name)
		case is == want || is == old && wantOld:
		default:
			d.find("spinsim %q, status %d, leaves a %s that is neither the old one nor whole: %q", args, e.status, name, shortened(is))
		}
	}
	if e.status == exitOK && e.out != whole.out {
		d.find("spinsim %q prints something else:\n%s", args, firstDifference(whole.out, e.out))
	}
}

// signal interrupts a command at a random moment.
func (d *attempt) signal() {
	args := d.outputs()
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}
	e := d.interrupted(signals[d.rng.IntN(len(signals))], args)
	d.kind = fmt.Sprintf("%s, status %d", d.kind, e.status)
	d.wholeOutputs(args, &e, e.status != exitOK)
}

// kill kills a sweep at a random moment. What it has kept is what the sweep
// goes on with. Its table is the same as without a kill.
func (d *attempt) kill() {
	e := d.interrupted(syscall.SIGKILL, sweptArgs)
	d.kind = fmt.Sprintf("%s, status %d", d.kind, e.status)
	again := d.run(sweptArgs, nil, nil)
	require.NoError(d.t, os.RemoveAll(filepath.Join(d.dir, "kept")))
	whole := d.run(sweptArgs, nil, nil)
	if again.status != exitOK || again.out != whole.out {
		d.find("after a kill the sweep goes on with status %d\n%s\n%s", again.status, again.errs, firstDifference(whole.out, again.out))
	}
}

// bounds runs a command with outputs under a bound that ulimit sets.
func (d *attempt) bounds(limit string) {
	args := d.outputs()
	e := d.run(args, func(c *exec.Cmd) {
		shell, err := exec.LookPath("sh")
		require.NoError(d.t, err)
		c.Args = append([]string{"sh", "-c", "ulimit " + limit + `; exec "$0" "$@"`, c.Path}, c.Args[1:]...)
		c.Path = shell
	}, nil)
	d.kind = fmt.Sprintf("%s, status %d", d.kind, e.status)
	if e.status != exitOK && e.status != exitFailed {
		d.find("spinsim %q with ulimit %s: status %d, expected 0 or 1\n%s", args, limit, e.status, e.errs)
	}
	d.wholeOutputs(args, &e, e.status != exitOK)
}

// fullDisk bounds the size of files that a command may write.
func (d *attempt) fullDisk() {
	d.bounds(fmt.Sprintf("-f %d", 1+(1<<d.rng.IntN(17))/512)) // blocks of 512 B
}

// littleMemory bounds the memory that a command may reserve, from 1.75 GiB, below
// which Go may end the program before its first line, to more than it needs.
func (d *attempt) littleMemory() {
	if d.rng.IntN(2) == 0 {
		d.bounds(fmt.Sprintf("-v %d", 7<<18+d.rng.IntN(2<<20))) // KiB
	} else {
		d.bounds(fmt.Sprintf("-d %d", 250_000+d.rng.IntN(1<<20)))
	}
}

// artefacts are commands, the files that they make, and the commands that read
// these.
var artefacts = []struct {
	command, file string
	readers       []string
}{
	{"run ring.yaml --format json", "", []string{"rerun F", "report F -o r.html"}},
	{"compare pingpong --profile spin-int --mode rdma --size 8,64 --format json", "", []string{"rerun F", "report F -o r.html"}},
	{"compare pingpong --profile spin-int --mode rdma --size 8,64 --format csv", "", nil},
	{"compare pingpong --profile spin-int --mode rdma --size 8,64 --format ndjson", "", nil},
	{"compare pingpong --profile spin-int --mode rdma --size 8,64 --format parquet", "", nil},
	{"compare pingpong --profile spin-int --mode rdma --size 8,64 --plot p.svg", "p.svg", nil},
	{"compare pingpong --profile spin-int --mode rdma --size 8 --samples s.csv", "s.csv", nil},
	{"run ring.yaml --trace t.json", "t.json", nil},
	{"run ring.yaml --trace t.pftrace", "t.pftrace", nil},
	{"run ring.yaml --pcap c.pcapng", "c.pcapng", nil},
	{"compare bcast --profile exanest --ranks 16 --size 64KiB --mode rdma --links l.json", "l.json", []string{"topology exanest --load F"}},
	{"goal gen bcast-binomial --ranks 8 -o a.goal", "a.goal", []string{"goal stat F", "goal run F", "goal convert F -o b.goal"}},
	{"storage generate oltp --requests 20 -o o.spc", "o.spc", []string{"storage run F --profile spin-int --mode rdma"}},
}

// editedArtefact edits a file that the program has made. The program notices.
func (d *attempt) editedArtefact() {
	d.write("ring.yaml", ring)
	a := artefacts[d.rng.IntN(len(artefacts))]
	made := d.run(strings.Fields(a.command), nil, nil)
	name, was := a.file, made.files[a.file]
	if name == "" {
		name, was = "printed", made.out
	}
	is := string(spoilOnce(d.rng, []byte(was)))
	d.write(name, was)
	if e := d.run([]string{"verify", name}, nil, nil); e.status != exitOK {
		d.find("spinsim %s: verify: status %d\n%s", a.command, e.status, e.out+e.errs)
	}
	if is == was || sameJSON(is, was) {
		return
	}
	d.write(name, is)
	readers := append([]string{"verify F"}, a.readers...)
	args := strings.Fields(readers[d.rng.IntN(len(readers))])
	args[slices.Index(args, "F")] = name
	e := d.run(args, nil, nil)
	d.kind = fmt.Sprintf("%s, status %d", d.kind, e.status)
	if e.status == exitOK {
		d.find("spinsim %q does not notice that %s was edited:\n%s", args, name, firstDifference(was, is))
	}
}

// sameJSON reports whether two texts are the same JSON in another layout.
func sameJSON(a, b string) bool {
	x, err := json.Marshal(json.RawMessage(a))
	y, also := json.Marshal(json.RawMessage(b))
	return err == nil && also == nil && string(x) == string(y)
}

// engineName is where files of two engines differ: the name, and what depends
// on it in a seal.
var engineName = regexp.MustCompile(`wazero|wasmtime|"sha256": "[0-9a-f]{64}"|record [0-9a-f]{64}|sha256 [0-9a-f]{64}`)

func withoutEngine(text string) string { return engineName.ReplaceAllString(text, "ENGINE") }

// drawScenario draws a scenario with messages for the handlers of m.wasm.
func drawScenario(rng *rand.Rand, m *manifest.Manifest) string {
	var b strings.Builder
	fmt.Fprintf(&b, "profile: %s\nranks: 2\nseed: %d\nentries:\n", []string{"spin-int", "spin-dis"}[rng.IntN(2)], rng.Uint32())
	fmt.Fprintf(&b, "  - {name: e, ranks: 1, length: %d, handlers: {module: m.wasm", 64<<rng.IntN(10))
	for _, kind := range []manifest.Kind{manifest.Header, manifest.Payload, manifest.Completion} {
		if of := m.OfKind(kind); len(of) > 0 {
			fmt.Fprintf(&b, ", %s: %s", kind, of[rng.IntN(len(of))])
		}
	}
	b.WriteString("}}\nprograms:\n  - ranks: 0\n    steps:\n")
	for range 1 + rng.IntN(3) {
		n := rng.IntN(1 << rng.IntN(15))
		fmt.Fprintf(&b, "      - put: {to: 1, entry: e, bytes: %d, fill: pattern, hdr_data: %d, count: %d}\n", n, rng.Uint32(), 1+rng.IntN(4))
	}
	b.WriteString("output: {events: all, stats: all, state: [{of: e}], memory: [{of: e}]}\n")
	return b.String()
}
