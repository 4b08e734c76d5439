package port

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/manifest"
	"github.com/spinsim/spinsim/internal/visible"
	"github.com/spinsim/spinsim/profile"
)

// job is a set of handlers on its way: module, scenario and result.
type job struct {
	*trial

	name    string // of its files
	program *program
	set     *set
	notes   []string // what was guessed, besides the notes of the program
	module  *module
	exports [3]string
	files   map[string][]byte
}

// note adds something that was guessed.
func (j *job) note(format string, args ...any) {
	j.notes = append(j.notes, fmt.Sprintf(format, args...))
}

// file adds a file beside the scenario and returns its name.
func (j *job) file(what string, content []byte) string {
	name := j.name + what
	j.files[name] = content
	return name
}

// scenario writes the scenario of a job, and the files that it reads.
func (j *job) scenario() (string, error) {
	profile, mtu := cmp.Or(j.profile, "pspin"), len(j.packets[0])
	if j.program.toolchain == paper {
		profile, mtu = "spin-dis", 4096
	}
	state, err := j.state()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# Written by spinsim port from %s. Run it with", j.set.from)
	line("#\n#   spinsim run %s.yaml\n#", j.name)
	for _, n := range slices.Concat(j.program.notes, j.notes) {
		line("# %s", visible.Line(n))
	}
	line("title: %q", j.name+", handlers for "+j.program.toolchain)
	line("profile: %s", profile)
	line("set: {%s}", strings.Join(append([]string{fmt.Sprintf("fabric.mtu: %d", mtu)}, j.trial.set...), ", "))
	line("ranks: %d\n", j.ranks())
	line("entries:")
	line("  - name: replies              # what handlers send, one after the other")
	line("    ranks: %s", map[bool]string{true: "[0, 1, 3]", false: "0"}[j.program.toolchain == paper])
	line("    ignore_bits: 0xffffffffffffffff")
	line("    options: [op_put, op_get, manage_local]")
	line("    length: %d", max(len(j.replies), 1<<20))
	if j.after != "" {
		if err := j.entryBefore(line, state); err != nil {
			return "", err
		}
	}
	line("  - name: handlers")
	line("    ranks: %d", j.device())
	if j.program.toolchain == paper {
		line("    ignore_bits: 0xffffffffffffffff")
	}
	line("    length: %d", max(j.hostBytes, int64(j.total())))
	if j.host != nil {
		line("    fill: {file: %s}", j.file(".host", j.host))
	}
	line("    handlers:")
	line("      module: %s", j.module.name)
	j.handlers(line, j.exports)
	if j.after == "" {
		b.WriteString(state)
	} else {
		line("      shares: before")
	}
	if j.wantPads != nil {
		line("  - name: scratchpads          # sums of all clusters, for the check below")
		line("    ranks: %d\n    match_bits: 1\n    length: %d", j.device(), scratchpadBytes)
		line("    handlers: {module: %s, payload: %s, shares: handlers}", j.module.name, probe)
	}
	j.hostProgram(line)
	j.expect(line)
	return b.String(), nil
}

// handlers names the handlers of an entry.
func (j *job) handlers(line func(string, ...any), exports [3]string) {
	for i, kind := range manifest.Kinds() {
		if exports[i] != "" {
			line("      %s: %s", kind, exports[i])
		}
	}
	if j.user > 0 {
		line("      user_header: %d", j.user)
	}
}

// entryBefore writes the entry of another set, whose memory the handlers share.
func (j *job) entryBefore(line func(string, ...any), state string) error {
	for _, o := range j.module.jobs {
		if o.set.name == j.after {
			line("  - name: before               # another set, which works on the same memory")
			line("    ranks: %d\n    match_bits: 2\n    length: %d", j.device(), j.total())
			line("    handlers:")
			line("      module: %s", j.module.name)
			j.handlers(line, j.module.exports[o.name])
			line("%s", strings.TrimSuffix(state, "\n"))
			return nil
		}
	}
	return fmt.Errorf("%s: no set %s in the module, whose data it looks for", j.set.from, j.after)
}

// total is the bytes of all packets.
func (j *job) total() (n int) {
	for _, p := range j.packets {
		n += len(p)
	}
	return n
}

// device is the rank with the handlers.
func (j *job) device() int {
	if j.program.toolchain == paper {
		return paperDevice
	}
	return 1
}

// ranks is the number of nodes.
func (j *job) ranks() int {
	if j.program.toolchain == paper {
		return 4
	}
	return 2
}

// hostProgram writes the steps of the sender.
func (j *job) hostProgram(line func(string, ...any)) {
	packets := j.file(".packets", slices.Concat(j.packets...))
	line("\nprograms:")
	line("  - ranks: 0")
	line("    buffers: [{name: packets, fill: {file: %s}}]", packets)
	line("    steps:")
	if j.after != "" {
		line("      - put: {to: %d, entry: before, from: packets, ack: ack}", j.device())
		line("      - wait: {acks: 1}")
	}
	switch {
	case !j.each:
		line("      - put: {to: %d, entry: handlers, from: packets, ack: ack}", j.device())
		line("      - wait: {acks: 1}")
	case len(slices.Compact(sizesOf(j.packets))) == 1:
		line("      - repeat:")
		line("          times: %d", len(j.packets))
		line("          steps:")
		line("            - put: {to: %d, entry: handlers, from: packets, offset: round * %d, bytes: %d, ack: ack}", j.device(), len(j.packets[0]), len(j.packets[0]))
		line("            - wait: {acks: 1}")
	default:
		at := 0
		for _, p := range j.packets {
			line("      - put: {to: %d, entry: handlers, from: packets, offset: %d, bytes: %d, ack: ack}", j.device(), at, len(p))
			line("      - wait: {acks: 1}")
			at += len(p)
		}
	}
	if j.wantPads != nil {
		line("      - put: {to: %d, entry: scratchpads, bytes: 8, fill: zero, ack: ack}", j.device())
		line("      - wait: {acks: 1}")
	}
}

func sizesOf(packets [][]byte) (list []int) {
	for _, p := range packets {
		list = append(list, len(p))
	}
	return list
}

// expect writes what must be true at the end.
func (j *job) expect(line func(string, ...any)) {
	var checks []string
	check := func(entry string, rank int, what string, pieces []piece) {
		for i, p := range pieces {
			name := j.file(fmt.Sprintf(".%s%d", what, i), p.bytes)
			checks = append(checks, fmt.Sprintf("memory: {of: %s, ranks: %d, offset: %d, equals: {file: %s}}", entry, rank, p.offset, name))
		}
	}
	check("handlers", j.device(), "host", j.wantHost)
	check("scratchpads", j.device(), "scratchpad", j.wantPads)
	if j.replies != nil {
		check("replies", 0, "replies", []piece{{0, j.replies}})
	}
	if j.elsewhere != nil {
		check("replies", j.where, "forwarded", []piece{{0, j.elsewhere}})
	}
	if j.wantCalls > 0 {
		checks = append(checks, fmt.Sprintf("stat: {ranks: %d, name: handler_calls, at_least: %d}", j.device(), j.wantCalls))
	}
	if checks != nil {
		line("\nexpect:                        # %s", j.wantBefore)
		for _, c := range checks {
			line("  - %s", c)
		}
	}
	line("\noutput:\n  stats: all")
}

// state writes what HPU memory holds at the beginning.
func (j *job) state() (string, error) {
	if j.program.toolchain == paper {
		return j.paperState(), nil
	}
	values := []string{}
	if j.hostBytes != hostBytes {
		values = append(values, fmt.Sprintf("host_mem_size: %d", j.hostBytes))
	}
	switch {
	case j.handlerMem == nil && len(values) > 0:
		return fmt.Sprintf("      state: {values: {%s}}\n", strings.Join(values, ", ")), nil
	case j.handlerMem == nil:
		return "", nil
	}
	for _, s := range j.module.described.States {
		n, err := s.Lookup("handler_mem[0]")
		if err != nil {
			continue
		}
		initial, err := s.Initial(&manifest.Device{})
		if err != nil {
			return "", err
		}
		if int64(len(initial)) < n.Offset+int64(len(j.handlerMem)) {
			return "", fmt.Errorf("%s: handler memory of %d bytes: the module has %d", j.set.from, len(j.handlerMem), int64(len(initial))-n.Offset)
		}
		copy(initial[n.Offset:], j.handlerMem)
		if err := j.relocate(initial, n.Offset); err != nil {
			return "", err
		}
		return fmt.Sprintf("      state: {file: %s}     # the module's own values, and the handlers' memory\n", j.file(".state", initial)), nil
	}
	return "", fmt.Errorf("%s: the module has no handler memory", j.set.from)
}

// relocate makes addresses of the pointers in handler memory, which begins at
// an offset of the state. A module has HPU memory behind its own.
func (j *job) relocate(state []byte, offset int64) error {
	if j.pointers == nil {
		return nil
	}
	device, err := profile.Load(cmp.Or(j.profile, "pspin"))
	if err != nil {
		return err
	}
	m, err := hpu.Load(j.module.name, j.module.wasm, device.Device())
	if err != nil {
		return err
	}
	layout, err := m.Layout(uint32(len(state)))
	if err != nil {
		return err
	}
	for _, at := range j.pointers {
		word := state[offset+at:]
		binary.LittleEndian.PutUint32(word, binary.LittleEndian.Uint32(word)+layout.HPU+uint32(offset))
	}
	return nil
}

// guesses are values of states in the paper's toolchain, by the names that its
// handlers give them; others are 1.
var guesses = map[string]string{
	"my_rank": "rank", "p": "ranks", "len": fmt.Sprint(paperMessage), "length": fmt.Sprint(paperMessage), "offset": "0", "source": "0", "vlen": "64", "stride": "64",
}

// paperState writes the fields of a state with values that fit their names.
func (j *job) paperState() string {
	list := j.stateFields()
	if len(list) == 0 {
		return "      state: [{zero: 64}]\n"
	}
	var fields, values []string
	for _, f := range list {
		value, known := guesses[f.name]
		if !known {
			value = "1"
		}
		count := ""
		if f.count != "" {
			count = ", count: " + f.count
		}
		fields = append(fields, fmt.Sprintf("{%s: %s, name: %s%s}", f.typ, value, f.name, count))
		values = append(values, f.name+" "+value)
	}
	j.note("%s: the values of its fields are unknown; assumed: %s", j.set.state, strings.Join(values, ", "))
	return fmt.Sprintf("      state: [%s]\n", strings.Join(fields, ", "))
}
