package serve

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/file"
)

// output is what a run has written.
func (p *page) output(id, name string) string {
	p.Helper()
	w := p.ask(http.MethodGet, "/api/runs/"+id+"/"+name, nil)
	require.Equal(p, http.StatusOK, w.Code, name)
	return w.Body.String()
}

// A run is the command that it shows, within limits.
func TestRun(t *testing.T) {
	p := open(t, "play")
	p.runs.Memory, p.runs.Threads = 4*leastMemory+1, 7
	s := p.run(ping)
	require.Equal(t, done, s.State, s.Message)
	require.Equal(t, []string{tableFile, resultFile, textFile, plotFile, reportFile}, s.Outputs)
	require.Equal(t, "spinsim compare pingpong --size 8,64", s.Command)
	require.Equal(t, 2, s.Points)
	words := p.output(s.ID, tableFile)
	require.Contains(t, words, "compare\npingpong\n--size=8,64\n--resume="+filepath.Join(p.runs.folder, "points"))
	require.Contains(t, words, "\n--quiet\n--time-limit=10m0s\n--threads=3\n--memory-limit=100663296B\n")
	sel := ping
	sel.View = viewTimeline
	s = p.run(sel)
	require.Equal(t, []string{tableFile, traceFile}, s.Outputs)
	require.Contains(t, p.output(s.ID, tableFile), "--trace=trace.json.gz")
	require.NotContains(t, p.output(s.ID, tableFile), "--resume")
}

// Every table of an experiment has its file.
func TestTables(t *testing.T) {
	p := open(t, "play")
	for _, e := range experiment.All() {
		if len(e.Details) == 0 {
			continue
		}
		s := p.run(selection{Experiment: e.Name, View: viewResult})
		for i := range e.Details {
			require.Contains(t, p.output(s.ID, e.Details[i].Name+".csv"), "--table="+e.Details[i].Name)
		}
	}
}

func TestMemory(t *testing.T) {
	require.NoError(t, (&Options{}).Check())
	require.NoError(t, (&Options{Memory: 3 * leastMemory}).Check())
	require.ErrorContains(t, (&Options{Memory: 3*leastMemory - 1}).Check(), "expected at least 192 MiB")
}

// What a program says when it refuses or fails is shown as it is, with what it
// has measured.
func TestFailures(t *testing.T) {
	s := open(t, "refuse").run(ping)
	require.Equal(t, []any{failed, 2, "spinsim: refused", []string{}}, []any{s.State, s.Status, s.Message, s.Outputs})
	p := open(t, "fail")
	s = p.run(ping)
	require.Equal(t, []any{failed, 1, "spinsim: a point failed", []string{tableFile}}, []any{s.State, s.Status, s.Message, s.Outputs})
	require.Equal(t, "a,b\n1,2\n", p.output(s.ID, tableFile))
	t.Setenv(child, "play")
	again := p.run(ping)
	require.Equal(t, []any{s.ID, done}, []any{again.ID, again.State}, "it begins anew")
}

// Errors of a program are kept up to a bound, and what is missing is counted.
func TestSaid(t *testing.T) {
	var s said
	_, err := io.Copy(&s, strings.NewReader(strings.Repeat("x", mostSaid+7)))
	require.NoError(t, err)
	require.Len(t, s.kept.Bytes(), mostSaid)
	require.True(t, strings.HasSuffix(s.text(), "x\n(7 more bytes)"))
}

// Two pages that ask for the same have one run. Others wait for their turn, and
// each can be cancelled, also while it waits.
func TestTwoPages(t *testing.T) {
	p := open(t, "block")
	other := &page{t, p.Server, p.cookie}
	of := func(p *page, size string) status {
		sel := ping
		sel.Axes = map[string]string{"size": size}
		return read[status](p, p.begin(sel))
	}
	first, same, second, third := of(p, "8"), of(other, "8"), of(other, "16"), of(p, "32")
	require.Equal(t, first.ID, same.ID)
	cancel := func(id string) status {
		return read[status](p, p.ask(http.MethodPost, "/api/runs/"+id+"/cancel", nil))
	}
	require.Equal(t, cancelled, cancel(third.ID).State)
	require.Equal(t, cancelled, cancel(first.ID).State)
	list := read[[]status](p, p.ask(http.MethodGet, "/api/runs", nil))
	require.Equal(t, []string{third.ID, second.ID, first.ID}, []string{list[0].ID, list[1].ID, list[2].ID})
	require.NotEqual(t, cancelled, list[1].State, "the other page's run goes on")
	require.Equal(t, cancelled, cancel(second.ID).State)
	t.Setenv(child, "play")
	s := p.run(ping)
	require.Equal(t, done, s.State)
	require.Equal(t, done, cancel(s.ID).State, "too late")
}

// The oldest runs make room, but not those that are under way.
func TestRoom(t *testing.T) {
	p := open(t, "refuse")
	first := p.run(ping)
	for range mostRuns - 2 { // under way
		p.runs.order = append(p.runs.order, &run{ended: make(chan struct{})})
	}
	sel := ping
	sel.Seed = "2"
	second := p.run(sel)
	require.Equal(t, http.StatusOK, p.ask(http.MethodGet, "/api/runs/"+first.ID, nil).Code)
	sel.Seed = "3"
	p.run(sel)
	require.Equal(t, http.StatusNotFound, p.ask(http.MethodGet, "/api/runs/"+first.ID, nil).Code)
	require.NoDirExists(t, filepath.Join(p.runs.folder, "runs", first.ID))
	p.runs.order[slices.Index(p.runs.order, p.runs.byID[second.ID])] = &run{ended: make(chan struct{})}
	sel.Seed = "4"
	p.run(sel)
	p.runs.order[mostRuns-1] = &run{ended: make(chan struct{})}
	require.Equal(t, http.StatusTooManyRequests, p.begin(ping).Code)
}

// Close ends programs and leaves nothing.
func TestClose(t *testing.T) {
	p := open(t, "block")
	id := read[status](p, p.begin(ping)).ID
	r := p.runs.byID[id]
	require.NoError(t, p.Close())
	<-r.ended
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// send sends a module.
func (p *page) send(name, of, slot string, body io.Reader) (int, sent, string) {
	p.Helper()
	q := url.Values{"name": {name}, "experiment": {of}, "slot": {slot}}
	w := p.ask(http.MethodPost, "/api/modules?"+q.Encode(), body)
	if w.Code != http.StatusOK {
		return w.Code, sent{}, read[struct{ Error string }](p, w).Error
	}
	return w.Code, read[sent](p, w), ""
}

// endless is a file that goes on.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

// A module is kept under the hash of its bytes, checked by the command, and runs
// under its name in the folder of its run.
func TestModules(t *testing.T) {
	p := open(t, "play")
	slot := experiment.Describe(experiment.All()[0]).Slots[0].Name
	code, m, _ := p.send("own.wasm", "pingpong", slot, strings.NewReader("module"))
	require.Equal(t, http.StatusOK, code)
	sel := ping
	sel.Modules = map[string]sent{slot: m}
	s := p.run(sel)
	require.Equal(t, "spinsim compare pingpong --handler "+slot+"=own.wasm --size 8,64", s.Command)
	data, err := os.ReadFile(filepath.Join(p.runs.folder, "runs", s.ID, "own.wasm"))
	require.NoError(t, err)
	require.Equal(t, "module", string(data))
	_, other, _ := p.send("own.wasm", "pingpong", slot, strings.NewReader("another"))
	sel.Modules = map[string]sent{slot: other}
	require.NotEqual(t, s.ID, p.run(sel).ID, "the name is the same, the module is not")
	slots := experiment.Describe(experiment.All()[0]).Slots
	sel.Modules = map[string]sent{slots[0].Name: m, slots[1].Name: other}
	w := p.begin(sel)
	require.Equal(t, http.StatusBadRequest, w.Code)
	require.Contains(t, w.Body.String(), "two different modules are called own.wasm")
	for _, name := range []string{"", "own.txt", "../own.wasm", "/own.wasm", "a b.wasm", ".wasm", "-x.wasm", "own.wasm/", "own\x00.wasm", strings.Repeat("x", 80) + ".wasm"} {
		code, _, says := p.send(name, "pingpong", slot, strings.NewReader("module"))
		require.Equal(t, http.StatusBadRequest, code, name)
		require.Contains(t, says, "with a name such as filter.wasm")
	}
	code, _, says := p.send("own.wasm", "pingpong", "none", strings.NewReader("module"))
	require.Equal(t, http.StatusBadRequest, code)
	require.Contains(t, says, "no slot")
	code, _, says = p.send("own.wasm", "pingpong", slot, endless{})
	require.Equal(t, http.StatusRequestEntityTooLarge, code)
	require.Contains(t, says, fmt.Sprintf("more than %d bytes", file.MaxModule))
	t.Setenv(child, "refuse")
	code, _, says = p.send("own.wasm", "pingpong", slot, strings.NewReader("module"))
	require.Equal(t, []any{http.StatusBadRequest, "--handler: spinsim: refused"}, []any{code, says})
	for i := len(p.runs.modules); i < mostModules; i++ {
		p.runs.modules[strings.Repeat("0", i)] = true
	}
	_, _, says = p.send("own.wasm", "pingpong", slot, strings.NewReader("one more"))
	require.Contains(t, says, "100 modules are here")
}
