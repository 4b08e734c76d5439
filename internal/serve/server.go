package serve

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/file"
)

//go:embed page
var embedded embed.FS

// Server shows the page. Close ends its runs and removes all that they wrote.
type Server struct {
	runs    *runs
	token   string
	cookie  string
	hosts   []string
	handler http.Handler
	index   []byte
	end     func() error
}

// mostAsked is the size of a request that is no module.
const mostAsked = 64 << 10

// New makes a server. Nobody is served without the address that URL returns.
func New(ctx context.Context, o Options) (*Server, error) {
	_, port, err := net.SplitHostPort(o.Host)
	if err != nil {
		return nil, err
	}
	folder, remove, err := file.Scratch("spinsim-serve")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	r := &runs{
		Options: o, folder: folder, ctx: ctx, places: make(chan struct{}, atOnce),
		byID: make(map[string]*run), modules: make(map[string]bool),
	}
	s := &Server{runs: r, token: rand.Text(), cookie: "spinsim-" + port, hosts: []string{o.Host, "localhost:" + port}}
	s.end = func() error {
		cancel()
		r.wait.Wait()
		remove()
		return nil
	}
	if err := s.prepare(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close ends the runs and removes their folder.
func (s *Server) Close() error { return s.end() }

// URL is the address that opens the page.
func (s *Server) URL() string { return "http://" + s.hosts[0] + "/?token=" + s.token }

func (s *Server) prepare() error {
	if err := os.Mkdir(filepath.Join(s.runs.folder, "modules"), 0o700); err != nil {
		return err
	}
	groups, devices, err := index()
	if err != nil {
		return err
	}
	s.index, err = json.Marshal(struct {
		Groups  []group  `json:"groups"`
		Devices []device `json:"devices"`
		Build   string   `json:"build"`
		Longest string   `json:"longest"`
	}{groups, devices, s.runs.Build, fmt.Sprintf("%d minutes", int(longest.Minutes()))})
	if err != nil {
		return err
	}
	page, err := fs.Sub(embedded, "page")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(page))
	mux.HandleFunc("GET /api/index", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, json.RawMessage(s.index)) })
	mux.HandleFunc("GET /api/experiments/{name}", s.experiment)
	mux.HandleFunc("GET /api/runs", s.list)
	mux.HandleFunc("POST /api/runs", s.start)
	mux.HandleFunc("GET /api/runs/{id}", s.one)
	mux.HandleFunc("POST /api/runs/{id}/cancel", s.cancel)
	mux.HandleFunc("GET /api/runs/{id}/{output}", s.output)
	mux.HandleFunc("POST /api/modules", s.module)
	s.handler = http.NewCrossOriginProtection().Handler(mux)
	return nil
}

// policy lets the page load only its own files. Pages of results have one of
// their own, and no origin.
const (
	policy       = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	outputPolicy = "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'"
)

// ServeHTTP refuses requests by another name, which a foreign page may have
// given to this address, and without the token, before it looks at them.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	if !slices.Contains(s.hosts, r.Host) {
		http.Error(w, fmt.Sprintf("spinsim serve: host %q, expected %s", r.Host, s.hosts[0]), http.StatusMisdirectedRequest)
		return
	}
	if r.Method == http.MethodGet && r.URL.Path == "/" && s.knows(r.URL.Query().Get("token")) {
		http.SetCookie(w, &http.Cookie{Name: s.cookie, Value: s.token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	if c, err := r.Cookie(s.cookie); err != nil || !s.knows(c.Value) {
		http.Error(w, "spinsim serve: no token, expected the whole address that the command has printed", http.StatusForbidden)
		return
	}
	s.handler.ServeHTTP(w, r)
}

func (s *Server) knows(token string) bool {
	return subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) == 1
}

// answer writes a value as JSON.
func answer(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v) // a page that has gone needs no answer
}

// refuse answers with an error, and the field of the page that it is about.
func refuse(w http.ResponseWriter, code int, err error) {
	var (
		where *wrongError
		large *http.MaxBytesError
	)
	said := struct {
		Error string `json:"error"`
		Field string `json:"field,omitempty"`
	}{Error: err.Error()}
	switch {
	case errors.As(err, &large):
		code = http.StatusRequestEntityTooLarge
		said.Error = fmt.Sprintf("more than %d bytes", large.Limit)
	case errors.Is(err, errFull):
		code = http.StatusTooManyRequests
	case errors.As(err, &where):
		said.Field = where.field
	}
	answer(w, code, said)
}

func (s *Server) experiment(w http.ResponseWriter, r *http.Request) {
	e, err := experiment.Find(r.PathValue("name"))
	if err != nil {
		refuse(w, http.StatusNotFound, err)
		return
	}
	answer(w, http.StatusOK, describe(e))
}

// list has the runs, the newest first.
func (s *Server) list(w http.ResponseWriter, _ *http.Request) {
	s.runs.mu.Lock()
	all := []status{}
	for _, r := range slices.Backward(s.runs.order) {
		all = append(all, r.look())
	}
	s.runs.mu.Unlock()
	answer(w, http.StatusOK, all)
}

func (s *Server) start(w http.ResponseWriter, r *http.Request) {
	var sel selection
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, mostAsked))
	d.DisallowUnknownFields()
	if err := d.Decode(&sel); err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	one, err := s.runs.begin(&sel)
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	answer(w, http.StatusOK, one.look())
}

// find returns the run that a request names, or answers that there is none.
func (s *Server) find(w http.ResponseWriter, r *http.Request) *run {
	s.runs.mu.Lock()
	defer s.runs.mu.Unlock()
	one := s.runs.byID[r.PathValue("id")]
	if one == nil {
		refuse(w, http.StatusNotFound, fmt.Errorf("no run %q: it is older than this server, or than its last %d runs", r.PathValue("id"), mostRuns))
	}
	return one
}

// often is how long a page that waits for a run goes without news.
const often = 400 * time.Millisecond

func (s *Server) one(w http.ResponseWriter, r *http.Request) {
	if one := s.find(w, r); one != nil {
		if r.URL.Query().Has("wait") {
			ctx, cancel := context.WithTimeout(r.Context(), often)
			defer cancel()
			select {
			case <-one.ended:
			case <-ctx.Done():
			}
		}
		answer(w, http.StatusOK, one.look())
	}
}

func (s *Server) cancel(w http.ResponseWriter, r *http.Request) {
	if one := s.find(w, r); one != nil {
		one.cancel()
		<-one.ended
		answer(w, http.StatusOK, one.look())
	}
}

// types are the kinds of outputs by their endings.
var types = map[string]string{
	".csv": "text/csv; charset=utf-8", ".txt": "text/plain; charset=utf-8", ".json": "application/json",
	".svg": "image/svg+xml", ".html": "text/html; charset=utf-8", ".gz": "application/gzip",
}

func (s *Server) output(w http.ResponseWriter, r *http.Request) {
	one := s.find(w, r)
	if one == nil {
		return
	}
	name := r.PathValue("output")
	if !slices.Contains(one.look().Outputs, name) {
		refuse(w, http.StatusNotFound, fmt.Errorf("no output %q", name))
		return
	}
	f, err := os.Open(filepath.Join(one.folder, name)) //nolint:gosec // one of the outputs
	if err != nil {
		refuse(w, http.StatusNotFound, err) // another page has made room
		return
	}
	defer f.Close() //nolint:errcheck // it was only read
	w.Header().Set("Content-Type", types[filepath.Ext(name)])
	w.Header().Set("Content-Security-Policy", outputPolicy)
	if r.URL.Query().Has("save") {
		w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", one.selection.Experiment+"."+name))
	}
	_, _ = io.Copy(w, f) // a page that has gone needs no answer
}

func (s *Server) module(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, file.MaxModule))
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	q := r.URL.Query()
	m, err := s.runs.receive(r.Context(), q.Get("name"), q.Get("experiment"), q.Get("slot"), data)
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	answer(w, http.StatusOK, m)
}
