package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
)

// served is the page of a running spinsim serve.
type served struct {
	*testing.T
	at     string
	client *http.Client
}

// serving starts spinsim serve. end interrupts it, and checks that nothing is
// left.
func serving(t *testing.T) (p *served, end func()) {
	t.Helper()
	temporary := t.TempDir()
	c := spinsim(t, t.TempDir(), "serve")
	c.Env = append(os.Environ(), "TMPDIR="+temporary)
	var errs bytes.Buffer
	c.Stderr = &errs
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	t.Cleanup(func() { _ = c.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err, errs.String())
	address, err := url.Parse(strings.TrimSpace(line))
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1", address.Hostname())
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	p = &served{t, "http://" + address.Host, &http.Client{Jar: jar}}
	require.Contains(t, p.get(strings.TrimPrefix(strings.TrimSpace(line), p.at)), "<title>spinsim</title>")
	return p, func() {
		t.Helper()
		require.NoError(t, c.Process.Signal(os.Interrupt))
		require.NoError(t, c.Wait(), errs.String())
		require.Empty(t, folder(t, temporary))
	}
}

func (p *served) get(path string) string {
	p.Helper()
	answer, err := p.client.Get(p.at + path)
	require.NoError(p, err)
	defer answer.Body.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(answer.Body)
	require.NoError(p, err)
	require.Equal(p, http.StatusOK, answer.StatusCode, string(text))
	return string(text)
}

func (p *served) post(path string, body io.Reader) string {
	p.Helper()
	answer, err := p.client.Post(p.at+path, "application/json", body)
	require.NoError(p, err)
	defer answer.Body.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(answer.Body)
	require.NoError(p, err)
	require.Equal(p, http.StatusOK, answer.StatusCode, string(text))
	return string(text)
}

// servedRun is what the test needs of a run.
type servedRun struct {
	ID, State, Command, Message string
	Outputs                     []string
}

// run runs a selection to its end.
func (p *served) run(selection map[string]any) (r servedRun) {
	p.Helper()
	body, err := json.Marshal(selection)
	require.NoError(p, err)
	require.NoError(p, json.Unmarshal([]byte(p.post("/api/runs", bytes.NewReader(body))), &r))
	for r.State == "waiting" || r.State == "running" {
		require.NoError(p, json.Unmarshal([]byte(p.get("/api/runs/"+r.ID+"?wait")), &r))
	}
	require.Equal(p, "done", r.State, r.Message)
	return r
}

// sameBytes runs the command that a run shows, and compares each of its outputs.
func (p *served) sameBytes(r servedRun, dir string) {
	p.Helper()
	words := strings.Fields(r.Command)[1:]
	printed := func(words ...string) string {
		p.Helper()
		c := spinsim(p.T, dir, words...)
		out, err := c.Output()
		if exit, is := err.(*exec.ExitError); is { //nolint:errorlint // of Output
			require.NoError(p, err, string(exit.Stderr))
		}
		return string(out)
	}
	written := func(name string) string {
		p.Helper()
		data, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(p, err)
		return string(data)
	}
	for _, name := range r.Outputs {
		page := p.get("/api/runs/" + r.ID + "/" + name)
		var command string
		switch base, kind, _ := strings.Cut(name, "."); {
		case name == "table.csv":
			command = printed(append(words, "--format", "csv")...)
		case name == "table.txt":
			command = printed(words...)
		case name == "result.json":
			command = printed(append(words, "--format", "json")...)
		case name == "plot.svg":
			printed(append(words, "--plot", name)...)
			command = written(name)
		case name == "trace.json.gz":
			printed(append(words, "--trace", name)...)
			command = written(name)
		case name == "report.html":
			require.NoError(p, os.WriteFile(filepath.Join(dir, "result.json"), []byte(printed(append(words, "--format", "json")...)), 0o600))
			command = printed("report", "result.json", "-o", "-")
		case kind == "csv":
			command = printed(append(words, "--format", "csv", "--table", base)...)
		default:
			p.Errorf("unknown output %s", name)
		}
		require.Equal(p, command, page, "%s: %s", r.Command, name)
	}
}

// The page shows the bytes of the command line: an experiment of each
// publication, a breakdown and a timeline, and a user's module.
func TestServeShowsTheSameBytes(t *testing.T) {
	p, end := serving(t)
	for i, publication := range experiment.Publications() {
		e := publication.Experiments[0]
		args := smoke(e, 0)
		axes := make(map[string]string)
		for i := 2; i < len(args); i += 2 {
			axes[strings.TrimPrefix(args[i], "--")] = args[i+1]
		}
		views := []string{"result", "breakdown", "timeline"}
		if i > 0 {
			views = views[:1]
		}
		for _, view := range views {
			selection := map[string]any{"experiment": e.Name, "view": view, "axes": axes, "profiles": []string{args[1]}}
			p.sameBytes(p.run(selection), t.TempDir())
		}
	}
	module, err := os.ReadFile("../../handlers/pingpong/pingpong.wasm")
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "own.wasm"), module, 0o600))
	slot := experiment.Describe(experiment.All()[0]).Slots[0].Name
	sent := json.RawMessage(p.post("/api/modules?name=own.wasm&experiment=pingpong&slot="+slot, bytes.NewReader(module)))
	r := p.run(map[string]any{"experiment": "pingpong", "view": "result", "axes": map[string]string{"size": "8,64"}, "modules": map[string]any{slot: sent}})
	require.Contains(t, r.Command, "--handler "+slot+"=own.wasm")
	p.sameBytes(r, dir)
	end()
}

// A signal is the end of the page, a limit is not.
func TestServeEndsAtALimit(t *testing.T) {
	c := spinsim(t, t.TempDir(), "serve", "--time-limit", "1ms")
	var errs bytes.Buffer
	c.Stderr = &errs
	require.Error(t, c.Run())
	require.Equal(t, exitFailed, c.ProcessState.ExitCode(), errs.String())
	require.Contains(t, errs.String(), "1ms of real time")
}
