package port

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/inet"
	"github.com/spinsim/spinsim/internal/manifest"
)

// write makes a checkout of files.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	return dir
}

// A Makefile is read, and nothing of it executed.
func TestMakefile(t *testing.T) {
	dir := write(t, map[string]string{"handlers/b.c": "", "handlers/a.c": ""})
	m := readMakefile("Makefile", dir, `NAME = x # comment
SRCS = handlers/$(NAME).c \
       $(wildcard handlers/*.c)
FLAGS := -DA=1
FLAGS += -D B=$${NAME} -DC=${NONE} -DD=$(shell touch executed)
NAME ?= y
ifdef DEBUG
FLAGS += -g
endif
recipe:
	SRCS = no.c
LOOP = $(LOOP)
B0 = xxxxxxxxxxxxxxxx
B1 = $(B0)$(B0)$(B0)$(B0)$(B0)$(B0)$(B0)$(B0)
B2 = $(B1)$(B1)$(B1)$(B1)$(B1)$(B1)$(B1)$(B1)
B3 = $(B2)$(B2)$(B2)$(B2)$(B2)$(B2)$(B2)$(B2)
B4 = $(B3)$(B3)$(B3)$(B3)$(B3)$(B3)$(B3)$(B3)
B5 = $(B4)$(B4)$(B4)$(B4)$(B4)$(B4)$(B4)$(B4)
`)
	m.root = dir
	known, unknown, err := m.words("SRCS")
	require.NoError(t, err)
	require.Equal(t, []string{"handlers/x.c", "handlers/a.c", "handlers/b.c"}, known)
	require.Empty(t, unknown)
	known, unknown, err = m.words("FLAGS")
	require.NoError(t, err)
	require.Equal(t, []string{"-DA=1", "-D", "B=${NAME}", "-g"}, known)
	require.Equal(t, []string{"-DC=${NONE}", "-DD=$(shell touch executed)"}, unknown)
	require.NoFileExists(t, filepath.Join(dir, "executed"))
	require.Equal(t, 7, m.branches)
	_, _, err = m.words("LOOP")
	require.ErrorContains(t, err, "Makefile:12: LOOP: $(LOOP) stands for itself")
	_, _, err = m.words("B5")
	require.ErrorContains(t, err, "Makefile:18: B5: stands for more than 65536 bytes")
}

const twoSets = `#include <handler.h>
// __handler__ void commented_ph(handler_args_t *args) {}
__handler__ void declared_ph(handler_args_t *args);
__handler__ void sum_ph(handler_args_t *args) { const char *s = "}"; if (1) { } }
__handler__ void sum_th(handler_args_t *args) {}
__handler__ void sum_hh(handler_args_t *args) {}
#ifdef OTHER
__handler__ void max_ph(handler_args_t *args) { /* } */ }
#else
__handler__ void max_ph(handler_args_t *args) {}
#endif
__handler__ void lone_hh(handler_args_t *args) {}
__handler__ void lone_ph(handler_args_t *args) {}
void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **mem)
{
	volatile handler_fn handlers[] = {NULL, sum_ph, sum_th};
	*hh = handlers[0]; *ph = handlers[1]; *th = handlers[2];
}
void init_handlers2(handler_fn *hh, handler_fn *ph, handler_fn *th, void **mem)
{
	*hh = NULL;
	*ph = (handler_fn) &max_ph;
	*th = NULL;
}
`

// Sets are what functions init_handlers hand out; the rest goes by its names.
func TestSets(t *testing.T) {
	dir := write(t, map[string]string{
		"app/Makefile":   "SPIN_APP_SRCS = code/two.c\nSPIN_CFLAGS = -O3 -DLIMIT=4 -Icode -Inone -Ilib/install/include -DN=$(N) -mabi=ilp32 ${DEFINITIONS}\n",
		"app/code/two.c": twoSets,
		"app/driver.c":   "int main() {}",
		"else/alone.c":   "#include <spin_host.h>\n__handler__ void alone_ph(handler_args_t *a) {}\n",
		".git/hidden.c":  twoSets,

		"app/lib/src/parts.h": "", "app/lib/src/in/more.h": "", "app/lib/src/more.c": "",
	})
	c, err := read(dir)
	require.NoError(t, err)
	list := c.programs()
	require.Len(t, list, 2)
	app := list[0]
	require.NoError(t, app.err)
	require.Equal(t, []string{"LIMIT=4"}, app.define)
	require.Equal(t, []string{filepath.Join(dir, "app", "code"), filepath.Join(dir, "app", "lib", "src", "in"), filepath.Join(dir, "app", "lib", "src")}, app.include)
	require.Equal(t, []set{
		{name: "sum", handlers: [3]string{"", "sum_ph", "sum_th"}, from: "app/code/two.c:14"},
		{name: "max", handlers: [3]string{"", "max_ph", ""}, from: "app/code/two.c:19"},
		{name: "lone", handlers: [3]string{"lone_hh", "lone_ph", ""}, from: "app/code/two.c:12", why: "no init_handlers names its handlers: put together by their names"},
	}, app.sets)
	require.Equal(t, []string{
		"app/Makefile:2: -DN=$(N) needs a variable of the command line: left out, the source's own value holds",
		"app/Makefile:2: -Inone: no such folder in the checkout: left out",
		"app/Makefile:2: -Ilib/install/include: not installed: the headers below lib are taken",
		"app/Makefile:2: -mabi=ilp32 is for another compiler: left out",
		"app/code/two.c:6: no init_handlers names sum_hh: left out",
	}, app.notes)
	require.Equal(t, []string{psPIN, fpsPIN}, []string{app.toolchain, list[1].toolchain})
	require.Equal(t, []string{"else/alone.c: no Makefile names it: built alone"}, list[1].notes)
}

// Whatever files and folders are called, programs have names that scenarios and
// files can have, no two the same; what cannot be read is named; nothing outside
// the checkout counts.
func TestHostileCheckout(t *testing.T) {
	const one = "__handler__ void x_ph(handler_args_t *a) {}\n"
	dir := write(t, map[string]string{
		"x.c": one, "a: {b,c}/x.c": one, "n\nl/x.c": one, "\xff/x.c": one, "d/x.c": one, "-/x.c": one,
		"macros/Makefile": "SPIN_APP_SRCS = $(CURDIR)/all.c $(wildcard $(PWD)/*.c) $(wildcard ../../*/*)\n",
		"macros/all.c": `#define H __handler__
#define __handler__ __attribute__((used))
H void hidden_ph(handler_args_t *a) {}
__handler__ int number_ph(handler_args_t *a) { return 0; }
` + one + `void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **mem)
{ volatile handler_fn handlers[] = {NULL, ghost_ph, x_ph}; }
`,
	})
	require.NoError(t, os.Symlink("/etc", filepath.Join(dir, "d", "link")))
	c, err := read(dir)
	require.NoError(t, err)
	var names, notes []string
	for _, p := range c.programs() {
		require.NoError(t, p.err)
		names = append(names, p.name)
		notes = append(notes, p.notes...)
	}
	require.Equal(t, []string{"macros", "handlers", "a---b-c", "d", "n-l", "x", "handlers"}, names)
	require.Subset(t, notes, []string{
		"macros/Makefile:1: SPIN_APP_SRCS: $(wildcard ../../*/*) has no value here: left out",
		"macros/all.c:1: __handler__ without void, a name and ( behind it: left out",
		"macros/all.c:6: no file with handlers has ghost_ph",
		`n\nl/x.c: no Makefile names it: built alone`,
	})
}

// What a compiler says about headers within headers ends after some lines.
func TestLongErrorsAreShort(t *testing.T) {
	err := shortened(errors.New(strings.Repeat("In file included from a.h:1:\n", 200)+strings.Repeat("a.h:1: nested too deeply\n", 4)), 3, ", over there")
	require.EqualError(t, err, strings.Repeat("a.h:1: nested too deeply\n", 3)+"and 1 more lines, over there")
}

// Handlers of the paper's toolchain have kinds by their records and names, and
// states that they cast to.
func TestPaperSets(t *testing.T) {
	s := readSource("smp_code.c", `#include "smp.h"
typedef struct { uint32_t rank; uint64_t left[3]; } tree_t;
typedef struct { void *p; } odd_t;
void tree_payload_handler(void *message, void *state) { tree_t *s = (tree_t *)state; ptl_payload_t p = *(ptl_payload_t *)message; }
void tree_completion_handler(void *m, void *state) { tree_t *s = (tree_t*) state; }
void common(void *message, void *state) { odd_t *s = (odd_t *)state; ptl_header_t h = *(ptl_header_t *)message; }
void put(void *message, void *state) { odd_t *s = (odd_t *)state; }
static int no(void *message, void *state) { return 0; }
`)
	var sets [][3]string
	for _, one := range paperSets([]*source{s}) {
		sets = append(sets, one.handlers)
	}
	require.Equal(t, [][3]string{{"", "tree_payload_handler", "tree_completion_handler"}, {"common", "put", ""}}, sets)
	fields, err := s.structure("tree_t")
	require.NoError(t, err)
	require.Equal(t, []field{{"rank", "u32", ""}, {"left", "u64", "3"}}, fields)
	_, err = s.structure("odd_t")
	require.EqualError(t, err, "type odd_t: void *p: not a number")
}

// Packets are what they seem to be: another reader finds their checksums right.
func TestPackets(t *testing.T) {
	data := words(3, 25)
	b := udp(9, data)
	require.Equal(t, []byte{8, 0}, b[12:14])
	p, err := inet.Parse(b[ethernetBytes:])
	require.NoError(t, err)
	d, err := inet.ParseUDP(&p)
	require.NoError(t, err)
	require.Equal(t, data, d.Data)
	p, err = inet.Parse(exchanged(b, ethernetBytes)[ethernetBytes:])
	require.NoError(t, err)
	_, err = inet.ParseUDP(&p)
	require.NoError(t, err, "the checksum holds when the ends change places")
	require.Equal(t, sender, p.Dst)

	p, err = inet.Parse(echo(8, 1, data[:99])[ethernetBytes:])
	require.NoError(t, err)
	require.Zero(t, checksum(p.Payload), "a sum over its own checksum")

	p, err = inet.Parse(segment(1, 5, 6, inet.SYN, data))
	require.NoError(t, err)
	s, err := inet.ParseTCP(&p)
	require.NoError(t, err)
	require.Equal(t, data, s.Data)
}

// ran runs the trial of a set on a module of internal/pspin, whose handlers
// compute what published examples compute.
func ran(t *testing.T, name, toolchain, payload, completion, body string) (j *job, checks int, err error) {
	t.Helper()
	wasm, err := os.ReadFile(filepath.Join("..", "pspin", name+".wasm"))
	require.NoError(t, err)
	p := &program{toolchain: toolchain, sources: []*source{{handlers: []function{{name: payload, body: body}}}}}
	s := &set{name: name, handlers: [3]string{"", payload, completion}, from: name}
	described, err := manifest.Read(wasm)
	require.NoError(t, err)
	j = &job{name: name, program: p, set: s, files: make(map[string][]byte), trial: trialOf(p, s), module: &module{name: name + ".wasm", wasm: wasm, described: described}}
	for i, kind := range manifest.Kinds() {
		if len(described.OfKind(kind)) > 0 {
			j.exports[i] = string(kind)
		}
	}
	text, err := j.scenario()
	require.NoError(t, err)
	j.files[name+".yaml"] = []byte(text)
	_, checks, err = j.run(t.Context())
	return j, checks, err
}

// The models agree with handlers of ours, which were written apart from them.
func TestModels(t *testing.T) {
	for _, one := range []struct{ module, toolchain, payload, completion, body string }{
		{"copy_to_host", psPIN, "copy_to_host_ph", "", ""},
		{"empty", psPIN, "empty_ph", "", ""},
		{"filtering", osmosis, "osmosis_filtering_ph", "", ""},
		{"ping_pong", psPIN, "pingpong_ph", "", ""},
		{"icmp_ping", fpsPIN, "pingpong_ph", "", "icmp_hdr"},
		{"udp_ping", fpsPIN, "pingpong_ph", "", ""},
	} {
		t.Run(one.module, func(t *testing.T) {
			j, checks, err := ran(t, one.module, one.toolchain, one.payload, one.completion, one.body)
			require.NoError(t, err)
			require.Positive(t, checks)
			require.True(t, j.known)
		})
	}
}

// Handlers that compute something else are found, whatever their name.
func TestModelsFindWrongHandlers(t *testing.T) {
	for name, models := range map[string][2]string{
		"nothing comes back":   {"empty", "pingpong_ph"},
		"nothing is in memory": {"empty", "copy_to_host_ph"},
		"it is somewhere else": {"ping_pong", "copy_to_host_ph"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := ran(t, models[0], psPIN, models[1], "", "")
			require.ErrorContains(t, err, "differ")
		})
	}
}

// The samples of the perceptron make it learn, and answer otherwise than
// without weights.
func TestPerceptron(t *testing.T) {
	tr := &trial{}
	learned(tr)
	require.Len(t, tr.packets, 2)
	require.Equal(t, uint16(len(tr.replies)), binary.LittleEndian.Uint16(tr.replies[2:]), "length of the answer")
	answers := tr.replies[ipUDPBytes+8:]
	ones := 0
	for i := range samples {
		ones += int(word(answers, i))
	}
	require.NotContains(t, []int{0, samples}, ones, "both answers come")
}

// One clear error for a folder that has nothing to bring.
func TestRunRefuses(t *testing.T) {
	_, err := Run(t.Context(), filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
	dir := write(t, map[string]string{"a.c": "int main() {}", "Makefile": "all:\n"})
	_, err = Run(t.Context(), filepath.Join(dir, "a.c"))
	require.ErrorContains(t, err, "a.c is no folder: expected a checkout with handlers")
	_, err = Run(t.Context(), dir)
	require.ErrorContains(t, err, "has no handlers: expected functions marked __handler__, or files that include smp.h")
}

// A Makefile with a file that is not there is an error of its set, with its
// line.
func TestMissingFile(t *testing.T) {
	r, err := Run(t.Context(), write(t, map[string]string{"x/Makefile": "A = 1\nSPIN_APP_SRCS = none.c\n"}))
	require.NoError(t, err)
	require.EqualError(t, r.Err(), "x: x/Makefile:2: SPIN_APP_SRCS: no file none.c in the checkout")
	var b strings.Builder
	require.NoError(t, r.Write(&b))
	require.Contains(t, b.String(), "not built")
}

// A Makefile cannot name what is outside of its checkout, nor by a link.
func TestOutside(t *testing.T) {
	dir := write(t, map[string]string{"secret.c": twoSets, "in/app/Makefile": "SPIN_APP_SRCS = ../../secret.c\nSPIN_CFLAGS = -I../..\n", "in/link/Makefile": "SPIN_APP_SRCS = a.c\n"})
	require.NoError(t, os.Symlink(filepath.Join(dir, "secret.c"), filepath.Join(dir, "in", "link", "a.c")))
	r, err := Run(t.Context(), filepath.Join(dir, "in"))
	require.NoError(t, err)
	require.ErrorContains(t, r.Err(), "app: app/Makefile:1: SPIN_APP_SRCS: no file ../../secret.c in the checkout")
	require.ErrorContains(t, r.Err(), "link: link/Makefile:1: SPIN_APP_SRCS: no file a.c in the checkout")
	require.Contains(t, r.Results[0].Notes, "app/Makefile:2: -I../..: no such folder in the checkout: left out")
	require.Empty(t, r.Files)
}

// Texts of somebody else's do no harm, whatever they are.
func FuzzText(f *testing.F) {
	f.Add(twoSets)
	f.Add("SPIN_APP_SRCS = $(A\nA = ${B}$\nB=$(wildcard [)\n")
	f.Add("#include \"smp.h\"\nvoid f(void *m, void *s) { (t *)state }} t;")
	f.Fuzz(func(t *testing.T, text string) {
		m := readMakefile("Makefile", ".", text)
		for name := range m.variables {
			if _, _, err := m.words(name); err != nil {
				require.ErrorContains(t, err, "Makefile:")
			}
		}
		s := readSource("x.c", text)
		require.Len(t, s.code, len(text))
		for _, one := range paperSets([]*source{s}) {
			_, _ = s.structure(one.state)
		}
	})
}
