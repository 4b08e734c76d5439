package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	_ "github.com/spinsim/spinsim/internal/libraries"
	_ "github.com/spinsim/spinsim/internal/wings"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/report"
)

// child says how this program plays spinsim.
const child = "SPINSIM_SERVE_TEST"

func TestMain(m *testing.M) {
	if how := os.Getenv(child); how != "" {
		os.Exit(play(how, os.Args[1:]))
	}
	os.Exit(m.Run())
}

// play is a spinsim that measures nothing. Whatever its arguments are, it may
// write only into the folder that it runs in.
func play(how string, args []string) int {
	flag := func(name string) (string, bool) {
		for _, arg := range args {
			if value, is := strings.CutPrefix(arg, "--"+name); is {
				return strings.TrimPrefix(value, "="), true
			}
		}
		return "", false
	}
	_, points := flag("points")
	switch {
	case how == "refuse" || points && how == "check" && !slices.Contains(args, "compare"):
		fmt.Fprintln(os.Stderr, "spinsim: refused")
		return 2
	case points:
		fmt.Println("one point\nanother point\n2 points")
	case how == "fail":
		fmt.Println("a,b\n1,2")
		fmt.Fprintln(os.Stderr, "spinsim: a point failed")
		return 1
	case how == "block":
		ended := make(chan os.Signal, 1)
		signal.Notify(ended, os.Interrupt)
		<-ended
	default:
		for _, name := range []string{"plot", "trace"} {
			if to, given := flag(name); given && os.WriteFile(to, []byte("file"), 0o600) != nil {
				return 1
			}
		}
		fmt.Println(strings.Join(args, "\n"))
	}
	return 0
}

const host = "127.0.0.1:4711"

// page is a browser with a token, or without.
type page struct {
	*testing.T
	*Server
	cookie *http.Cookie
}

func open(t *testing.T, how string) *page {
	t.Helper()
	t.Setenv(child, how)
	t.Setenv("TMPDIR", t.TempDir())
	program, err := os.Executable()
	require.NoError(t, err)
	s, err := New(t.Context(), Options{Host: host, Program: program})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return &page{t, s, &http.Cookie{Name: "spinsim-4711", Value: s.token}}
}

// ask sends a request, which change may make a bad one.
func (p *page) ask(method, path string, body io.Reader, change ...func(r *http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, body)
	r.Host = host
	if p.cookie != nil {
		r.AddCookie(p.cookie)
	}
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w
}

func read[T any](p *page, w *httptest.ResponseRecorder) (v T) {
	p.Helper()
	require.NoError(p, json.Unmarshal(w.Body.Bytes(), &v), w.Body)
	return v
}

// begin asks for a run.
func (p *page) begin(sel selection) *httptest.ResponseRecorder {
	p.Helper()
	body, err := json.Marshal(sel)
	require.NoError(p, err)
	return p.ask(http.MethodPost, "/api/runs", bytes.NewReader(body))
}

// run asks for a run, and waits for its end.
func (p *page) run(sel selection) status {
	p.Helper()
	w := p.begin(sel)
	require.Equal(p, http.StatusOK, w.Code, w.Body)
	return p.await(read[status](p, w).ID)
}

func (p *page) await(id string) status {
	p.Helper()
	p.runs.mu.Lock()
	r := p.runs.byID[id]
	p.runs.mu.Unlock()
	<-r.ended
	return r.look()
}

var ping = selection{Experiment: "pingpong", View: viewResult, Axes: map[string]string{"size": "8,64"}}

// Nothing is answered without the token, not even a file of the page.
func TestToken(t *testing.T) {
	p := open(t, "play")
	paths := []string{
		"/", "/main.js", "/style.css", "/api/index", "/api/experiments/pingpong", "/api/runs", "/api/runs/x", "/api/runs/x/table.csv", "/none",
		"/?token=", "/?token=wrong", "/main.js?token=" + p.token,
	}
	for _, cookie := range []*http.Cookie{nil, {Name: "spinsim-4711", Value: "wrong"}, {Name: "spinsim-1", Value: p.token}, {Name: "spinsim-4711", Value: ""}} {
		stranger := &page{t, p.Server, cookie}
		for _, path := range paths {
			w := stranger.ask(http.MethodGet, path, nil)
			require.Equal(t, http.StatusForbidden, w.Code, path)
			require.NotContains(t, w.Body.String(), p.token)
		}
		require.Equal(t, http.StatusForbidden, stranger.begin(ping).Code)
		require.Equal(t, http.StatusForbidden, stranger.ask(http.MethodPost, "/api/modules", nil).Code)
	}
	stranger := &page{t, p.Server, nil}
	w := stranger.ask(http.MethodGet, strings.TrimPrefix(p.URL(), "http://"+host), nil)
	require.Equal(t, http.StatusSeeOther, w.Code)
	require.Equal(t, "/", w.Header().Get("Location"), "the token stays out of the address")
	cookie := w.Result().Cookies()[0]
	require.True(t, cookie.HttpOnly)
	require.Equal(t, http.SameSiteStrictMode, cookie.SameSite)
	require.Equal(t, http.StatusOK, (&page{t, p.Server, cookie}).ask(http.MethodGet, "/", nil).Code)
}

// A foreign page that has the browser's cookie, or a name for this address, is
// refused.
func TestForeignPages(t *testing.T) {
	p := open(t, "play")
	for _, name := range []string{"evil.example", "evil.example:4711", "127.0.0.1", "127.0.0.1:4712", ""} {
		w := p.ask(http.MethodGet, "/", nil, func(r *http.Request) { r.Host = name })
		require.Equal(t, http.StatusMisdirectedRequest, w.Code, name)
	}
	for _, header := range [][2]string{{"Origin", "http://evil.example"}, {"Origin", "null"}, {"Origin", "http://127.0.0.1:4712"}, {"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}} {
		for _, path := range []string{"/api/runs", "/api/modules", "/api/runs/x/cancel"} {
			w := p.ask(http.MethodPost, path, nil, func(r *http.Request) { r.Header.Set(header[0], header[1]) })
			require.Equal(t, http.StatusForbidden, w.Code, header)
		}
	}
	w := p.ask(http.MethodGet, "/", nil)
	require.Contains(t, w.Header().Get("Content-Security-Policy"), "default-src 'self'")
	require.NotContains(t, w.Header().Get("Content-Security-Policy"), "unsafe")
	require.Empty(t, w.Header().Get("Access-Control-Allow-Origin"))
	require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
}

// No path leads out of the page's own files and the outputs of runs.
func TestPaths(t *testing.T) {
	p := open(t, "play")
	id := p.run(ping).ID
	for _, path := range []string{
		"/../serve.go", "/..%2f..%2fgo.mod", "/page/../server.go", "/%2e%2e/doc.go", "/doc.go",
		"/api/runs/" + id + "/points.txt", "/api/runs/" + id + "/..%2f" + id + "%2ftable.csv", "/api/runs/" + id + "/%2fetc%2fpasswd",
		"/api/runs/..%2f..%2fmodules/x.wasm", "/api/runs/none/table.csv", "/api/experiments/..%2f..%2fgo.mod",
	} {
		w := p.ask(http.MethodGet, path, nil)
		require.GreaterOrEqual(t, w.Code, 300, path)
		require.NotContains(t, w.Body.String(), "package serve", path)
	}
	for _, name := range p.await(id).Outputs {
		w := p.ask(http.MethodGet, "/api/runs/"+id+"/"+name, nil)
		require.Equal(t, http.StatusOK, w.Code)
		require.Contains(t, w.Header().Get("Content-Security-Policy"), "sandbox", "what a run has written has no origin")
		require.Equal(t, types[filepath.Ext(name)], w.Header().Get("Content-Type"))
	}
}

// What every experiment has by default is a selection, and what the registry
// offers is all that the page knows.
func TestDefaults(t *testing.T) {
	for _, e := range experiment.All() {
		d := describe(e)
		sel := selection{Experiment: e.Name, View: viewResult, Axes: make(map[string]string)}
		for _, a := range d.Axes {
			sel.Axes[a.Name] = a.Default
			require.NotEmpty(t, d.Cells[a.Name].Key, "%s: no column of axis %s", e.Name, a.Name)
		}
		if d.Devices {
			sel.Profiles = d.Profiles
		}
		c, err := sel.check()
		require.NoError(t, err, e.Name)
		require.Contains(t, c.arguments(), "--"+d.Axes[0].Name+"="+d.Axes[0].Default)
		require.NotEmpty(t, d.Value, e.Name)
		sel.View = viewBreakdown
		_, err = sel.check()
		require.Equal(t, d.Broken == "", err == nil, e.Name)
		sel.View = viewTimeline
		_, err = sel.check()
		require.Equal(t, d.Traced, err == nil, e.Name)
	}
}

// No axis of texts takes the name of a file elsewhere.
func TestNoFilesOfTheUser(t *testing.T) {
	found := 0
	for _, e := range experiment.All() {
		for i := range e.Axes {
			a := &e.Axes[i]
			if a.Kind != report.Text || a.Fixed() {
				continue
			}
			found++
			for _, text := range []string{"/etc/passwd", "../x.goal", `..\x`, `C:\x`, "-", "~/x", "x\x00", "a\nb", "$HOME", ""} {
				_, err := (&selection{Experiment: e.Name, View: viewResult, Axes: map[string]string{a.Name: text}}).check()
				require.ErrorContains(t, err, "--"+a.Name+":", "%s %q", e.Name, text)
			}
		}
	}
	require.Positive(t, found)
}

// Bad requests are one error, which names the field. No program starts.
func TestBadSelections(t *testing.T) {
	p := open(t, "play")
	slot := experiment.Describe(experiment.All()[0]).Slots[0].Name
	with := func(change func(s *selection)) selection {
		s := ping
		change(&s)
		return s
	}
	module := func(slot, id, name string) selection {
		return with(func(s *selection) { s.Modules = map[string]sent{slot: {id, name}} })
	}
	id := strings.Repeat("0", 64)
	for _, c := range []struct {
		sel         selection
		field, says string
	}{
		{selection{Experiment: "../x", View: viewResult}, "experiment", "no experiment"},
		{selection{Experiment: "pingpong"}, "view", "expected one of result, breakdown, timeline"},
		{with(func(s *selection) { s.Axes = map[string]string{"siez": "8"} }), "siez", "no such axis"},
		{with(func(s *selection) { s.Axes = map[string]string{"plot": "x.svg"} }), "plot", "no such axis"},
		{with(func(s *selection) { s.Axes = map[string]string{"size": "eight"} }), "size", "eight"},
		{with(func(s *selection) { s.Axes = map[string]string{"size": "8 --plot=/x"} }), "size", "8 --plot=/x"},
		{with(func(s *selection) { s.Axes = map[string]string{"size": "1..1GiB+1"} }), "size", "more than"},
		{with(func(s *selection) { s.Axes = map[string]string{"mode": "rdma,--help"} }), "mode", "unknown value"},
		{with(func(s *selection) { s.Profiles = []string{"/etc/passwd"} }), "profile", "no embedded profile"},
		{with(func(s *selection) { s.Profiles = []string{"spin-int,x.yaml"} }), "profile", "no embedded profile"},
		{with(func(s *selection) { s.Set = []string{"hpu.cores"} }), "set", "expected PATH=VALUE"},
		{with(func(s *selection) { s.Set = []string{"--plot=x"} }), "set", "expected PATH=VALUE"},
		{with(func(s *selection) { s.Set = []string{"hpu.cores=8\n"} }), "set", "expected PATH=VALUE"},
		{with(func(s *selection) { s.Seed = "-1" }), "seed", "whole number"},
		{with(func(s *selection) { s.Preset = "none" }), "preset", "none"},
		{module("none", id, "a.wasm"), "handler", "no slot"},
		{module(slot, "../x", "a.wasm"), "handler", "was sent"},
		{module(slot, id, "../a.wasm"), "handler", "was sent"},
		{module(slot, id, "-a.wasm"), "handler", "was sent"},
		{module(slot, id, "a.wasm"), "handler", "not here any more"},
	} {
		w := p.begin(c.sel)
		said := read[struct{ Error, Field string }](p, w)
		require.Equal(t, http.StatusBadRequest, w.Code, said)
		require.Equal(t, c.field, said.Field, said)
		require.Contains(t, said.Error, c.says)
	}
	for _, body := range []string{"", "{", `{"program": "sh"}`, "[]", `{"axes": {"size": 8}}`} {
		require.Equal(t, http.StatusBadRequest, p.ask(http.MethodPost, "/api/runs", strings.NewReader(body)).Code, body)
	}
	w := p.ask(http.MethodPost, "/api/runs", strings.NewReader(`{"seed": "`+strings.Repeat("1", mostAsked)+`"}`))
	require.Equal(t, http.StatusRequestEntityTooLarge, w.Code)
	require.Empty(t, read[[]status](p, p.ask(http.MethodGet, "/api/runs", nil)))
}

// A value is one word with its flag, whatever it looks like, and a line that
// people type has the same words.
func TestArguments(t *testing.T) {
	sel := ping
	sel.Profiles, sel.Set, sel.Seed, sel.View = profile.Names()[:2], []string{"hpu.cores=1,2", "name=it's --help"}, "7", viewBreakdown
	c, err := sel.check()
	require.NoError(t, err)
	require.Equal(t, []string{
		"compare", "pingpong", "--breakdown", "--profile=" + strings.Join(profile.Names()[:2], ","), "--set=hpu.cores=1,2",
		"--set=name=it's --help", "--seed=7", "--size=8,64",
	}, c.arguments())
	require.Contains(t, c.line(), `spinsim compare pingpong --breakdown --profile `)
	require.Contains(t, c.line(), `--set 'name=it'\''s --help' --seed 7 --size 8,64`)
}
