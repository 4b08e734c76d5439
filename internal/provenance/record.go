package provenance

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/internal/seal"
	"github.com/spinsim/spinsim/internal/visible"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

// Record describes what produced a result.
type Record struct {
	Build     Build           `json:"spinsim"`
	Command   string          `json:"command"`             // for example "compare bcast"
	Arguments json.RawMessage `json:"arguments,omitempty"` // of the command, for example axes
	Profiles  []Profile       `json:"profiles,omitempty"`
	Seed      *uint64         `json:"seed,omitempty"` // nil: no randomness
	Engine    string          `json:"engine,omitempty"`
	Handlers  []Handler       `json:"handlers,omitempty"`
	Inputs    []Input         `json:"inputs,omitempty"`
	// Unused are overrides that changed nothing, with the reasons.
	Unused []string `json:"unused,omitempty"`
}

// Profile is a complete profile of device and network.
type Profile struct {
	Name      string          `json:"name"`     // of the profile
	From      string          `json:"from"`     // as the user gave it: a name or a file
	Embedded  bool            `json:"embedded"` // one of spinsim's own
	Overrides []string        `json:"overrides,omitempty"`
	SHA256    string          `json:"sha256"`  // of Content without white space
	Content   json.RawMessage `json:"content"` // every value, with overrides
}

// Handler is a module that ran.
type Handler struct {
	Name   string `json:"name"`
	Path   string `json:"path,omitempty"` // of the user's file; "": one of spinsim's own
	Slot   string `json:"slot,omitempty"` // where it runs in place of a library's
	SHA256 string `json:"sha256"`         // of the module
}

// Input is a file that was read.
type Input struct {
	Name   string `json:"name"`           // as the user gave it; "-": the standard input
	Flag   string `json:"flag,omitempty"` // the flag that named it; "": an argument did
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256"`
	Text   string `json:"text,omitempty"`   // the file itself, if it is short text
	Base64 []byte `json:"base64,omitempty"` // the file itself, if it is short and not text
}

// MaxIncluded is the maximum size of an input that the record includes, in
// bytes. For a larger one it has the name and the hash.
const MaxIncluded = 256 << 10

// Hash returns the SHA-256 of data in hexadecimal.
func Hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// shortHash is how many digits of a hash people and table rows see.
const shortHash = 12

// Short returns the beginning of a hash.
func Short(hash string) string { return hash[:min(shortHash, len(hash))] }

// NewProfile records a profile.
func NewProfile(p *profile.Profile) (Profile, error) {
	content, err := p.Content()
	return Profile{
		Name: p.Name, From: p.Origin.Name, Embedded: p.Origin.Embedded, Overrides: p.Origin.Overrides, SHA256: Hash(content), Content: content,
	}, err
}

// belowHere reads the files that overrides in a record name, such as networks.
// Somebody else may have written the record.
var belowHere = profile.Files(func(name string, limit int64) ([]byte, error) { return file.ReadBelow(".", name, limit) })

// Load makes the recorded profile, with additional overrides. Its origin is the
// recorded one.
func (p *Profile) Load(more ...string) (*profile.Profile, error) {
	loaded, err := belowHere.Parse("recorded as "+p.From, p.Content, more...)
	if err == nil {
		loaded.Origin = profile.Origin{Name: p.From, Embedded: p.Embedded, Overrides: append(append([]string(nil), p.Overrides...), more...)}
	}
	return loaded, err
}

// Check returns an error if the content does not match the hash.
func (p *Profile) Check() error {
	// jq and other programs may have changed the layout and the escapes of
	// the document
	plain, err := profile.Canonical(p.Content)
	if err != nil {
		return fmt.Errorf("profile %s: %w", visible.Line(p.Name), err)
	}
	if is := Hash(plain); is != p.SHA256 {
		return fmt.Errorf("profile %s: the content has the hash %s, recorded is %s: it was changed afterwards", visible.Line(p.Name), is, p.SHA256)
	}
	return nil
}

// Verify returns an error for a profile that is recorded as spinsim's own, if
// this version does not have it, or has other values for it.
func (p *Profile) Verify() error {
	if !p.Embedded {
		return nil
	}
	if profile.IsFile(p.From) {
		return fmt.Errorf("profile %s: recorded as one of spinsim's own, but its name leads to a file", p.From)
	}
	now, err := belowHere.Load(p.From, p.Overrides...)
	if err != nil {
		return err
	}
	is, err := NewProfile(now)
	if err == nil && is.SHA256 != p.SHA256 {
		err = &OtherProfileError{p, is.SHA256}
	}
	return err
}

// OtherProfileError is the error of Verify for values that differ.
type OtherProfileError struct {
	Recorded *Profile
	Is       string // hash in this version
}

// Error has both hashes.
func (e *OtherProfileError) Error() string {
	return fmt.Sprintf("profile %s is another one in this version: its hash is %s, recorded is %s", e.Recorded.From, e.Is, e.Recorded.SHA256)
}

// Changes lists the values that differ, and how to run either profile.
func (e *OtherProfileError) Changes() (lines []string, err error) {
	was, err := e.Recorded.Load()
	if err != nil {
		return nil, err
	}
	to := func(name string) ([]profile.Difference, error) {
		p, err := profile.Load(name, e.Recorded.Overrides...)
		if err != nil {
			return nil, err
		}
		return profile.Diff(was, p)
	}
	list, err := to(e.Recorded.From)
	if err != nil {
		return nil, err
	}
	if list == nil {
		return []string{"  every value is the same: only name or description differ"}, nil
	}
	for i, d := range list {
		if i == shownChanges {
			lines = append(lines, fmt.Sprintf("  and %d more", len(list)-i))
			break
		}
		lines = append(lines, "  "+d.String())
	}
	how := "this run takes the recorded one"
	for _, dated := range profile.Dated(profile.Undated(e.Recorded.From)) {
		if list, err := to(dated); err == nil && list == nil {
			how += ", that of --profile " + dated
			break
		}
	}
	return append(lines, "  "+how+"; --profile "+e.Recorded.From+" is the one on the right"), nil
}

// shownChanges is how many values of a changed profile are listed. The others
// are counted.
const shownChanges = 20

// NewHandler records a module. path is the path of a user's file.
func NewHandler(name, path string, wasm []byte) Handler {
	return Handler{Name: name, Path: path, SHA256: Hash(wasm)}
}

// Verify returns an error if a module is not the recorded one.
func (h *Handler) Verify(wasm []byte) error {
	is := Hash(wasm)
	switch {
	case is == h.SHA256:
		return nil
	case h.Path == "":
		return fmt.Errorf("the built-in module %s has changed: its hash is %s, recorded is %s", h.Name, is, h.SHA256)
	}
	return anotherFile(h.Path)
}

// String returns name and short hash.
func (h *Handler) String() string {
	name := h.Name
	if h.Slot != "" {
		name += " in " + h.Slot
	}
	return name + " " + Short(h.SHA256)
}

// NewInput records a file, with its content if that is short.
func NewInput(name string, data []byte) Input {
	in := Input{Name: name, Bytes: len(data), SHA256: Hash(data)}
	switch {
	case len(data) > MaxIncluded:
	case isText(data):
		in.Text = string(data)
	default:
		in.Base64 = data
	}
	return in
}

// isText reports whether data is UTF-8 without control characters except line
// breaks and tabs.
func isText(data []byte) bool {
	return utf8.Valid(data) && !bytes.ContainsFunc(data, func(r rune) bool { return r < ' ' && r != '\n' && r != '\r' && r != '\t' })
}

// Data returns the bytes of the input, from the record or, if they are not
// there, by calling read with its name. Bytes that differ from the recorded
// ones are an error.
func (in *Input) Data(read func(name string) ([]byte, error)) (data []byte, err error) {
	switch {
	case !in.Included():
		if data, err = read(in.Name); err != nil {
			return nil, err
		}
	case in.Base64 != nil:
		data = in.Base64
	default:
		data = []byte(in.Text)
	}
	return data, in.Verify(Hash(data))
}

// Verify returns an error if an input does not have the recorded hash.
func (in *Input) Verify(hash string) error {
	if hash != in.SHA256 {
		return anotherFile(in.Name)
	}
	return nil
}

// anotherFile is the error about a file that a record names. It has no hash:
// somebody else may have named the file, to learn about it.
func anotherFile(name string) error {
	return fmt.Errorf("%s is another file than the recorded one", visible.Line(name))
}

// Input returns the record of the named file, or nil.
func (r *Record) Input(name string) *Input {
	for i := range r.Inputs {
		if r.Inputs[i].Name == name {
			return &r.Inputs[i]
		}
	}
	return nil
}

// Files lists the files that were read: inputs, modules and profiles of the
// user.
func (r *Record) Files() (names []string) {
	for i := range r.Inputs {
		names = append(names, r.Inputs[i].Name)
	}
	for i := range r.Handlers {
		names = append(names, r.Handlers[i].Path)
	}
	for i := range r.Profiles {
		names = append(names, r.Profiles[i].From)
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" || name == "-" })
}

// Repeatable reports whether rerun can make the document again. What a command
// writes beside its result, or tells of one message, it cannot.
func (r *Record) Repeatable() bool {
	if beside := strings.Contains(r.Command, " of "); beside {
		return false
	}
	return !slices.Contains([]string{"handler inspect", "handler profile", "advise", "explain", "topology", "topology path"}, r.Command)
}

// WithArguments sets the arguments.
func (r *Record) WithArguments(v any) error {
	var err error
	r.Arguments, err = json.Marshal(v)
	return err
}

// Parse reads the arguments into v. A field that v does not have is an error.
func (r *Record) Parse(v any) error {
	d := json.NewDecoder(bytes.NewReader(r.Arguments))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("provenance.arguments: %w", err)
	}
	return nil
}

// UnusedNotes are sentences about Unused, for people.
func (r *Record) UnusedNotes() (notes []string) {
	if r == nil {
		return nil
	}
	for _, one := range r.Unused {
		notes = append(notes, "--set "+visible.Line(strings.Replace(one, " (", ": nothing used it (", 1))+".")
	}
	return notes
}

// AddHandler records a module unless the record has it.
func (r *Record) AddHandler(h Handler) {
	if slices.Contains(r.Handlers, h) {
		return
	}
	r.Handlers = append(r.Handlers, h)
}

// Facts returns the facts for people: name and value.
func (r *Record) Facts() (facts [][2]string) {
	add := func(what, value string) { facts = append(facts, [2]string{what, value}) }
	add("spinsim", r.Build.String())
	for i := range r.Profiles {
		p := &r.Profiles[i]
		text := p.Name + " " + Short(p.SHA256)
		if len(p.Overrides) > 0 {
			text += " with " + strings.Join(p.Overrides, " ")
		}
		add("profile", text)
	}
	if r.Seed != nil {
		add("seed", fmt.Sprint(*r.Seed))
	}
	for i := range r.Handlers {
		add("handler", r.Handlers[i].String())
	}
	for i := range r.Inputs {
		add("input", r.Inputs[i].Name+" "+Short(r.Inputs[i].SHA256))
	}
	return facts
}

// Lines implements report.Origin. It returns Facts in one line.
func (r *Record) Lines() []string {
	var parts []string
	for _, f := range r.Facts() {
		parts = append(parts, f[0]+" "+f[1])
	}
	return []string{visible.Line(strings.Join(parts, "; "))}
}

// Seal returns what the seals of files with this record contain: the version of
// the program, and the hash of the record. A nil record has neither.
func (r *Record) Seal() (program, hash string, err error) {
	if r == nil {
		return "", "", nil
	}
	hash, err = seal.Hash(r)
	return r.Build.String(), hash, err
}

// Args returns the facts for a timeline, with the full hashes and the command.
func (r *Record) Args() (args []sim.Arg) {
	count := map[string]int{}
	for _, f := range append([][2]string{{"command", r.Command}, {"arguments", string(r.Arguments)}}, r.Facts()...) {
		key := f[0]
		if count[key]++; count[key] > 1 {
			key = fmt.Sprintf("%s %d", key, count[key])
		}
		args = append(args, sim.Arg{Key: key, Text: f[1]})
	}
	return args
}

// Columns returns the columns that describe the origin in every row of CSV,
// JSON and NDJSON. Row returns their values.
func Columns() []report.Column {
	return []report.Column{
		{Name: "profile_hash", ForPrograms: true, Help: "beginning of the SHA-256 of the profile with all overrides applied: rows with the same hash are of the same device and network"},
		{Name: "overrides", ForPrograms: true, Help: "values of the profile that --set or a scenario has replaced, as path=value"},
		{Name: "seed", Kind: report.Count, ForPrograms: true, Help: "the number from which everything random is made"},
		{Name: "handler", ForPrograms: true, Help: "handler modules that ran: built-in ones by their name, others by that of the file"},
		{Name: "handler_hash", ForPrograms: true, Help: "beginning of the SHA-256 of each of them"},
		{Name: "version", ForPrograms: true, Help: "of spinsim, which spinsim version prints; behind it module and version of a user's program that it is a library of"},
	}
}

// Row returns the values of Columns for a profile and the modules that ran.
func (r *Record) Row(p *Profile, handlers []Handler) []any {
	row := []any{nil, nil, nil, nil, nil, r.Build.String()}
	if p != nil {
		row[0], row[1] = Short(p.SHA256), strings.Join(p.Overrides, " ")
	}
	if r.Seed != nil {
		row[2] = *r.Seed
	}
	var names, hashes []string
	for _, h := range handlers {
		names, hashes = append(names, h.Name), append(hashes, Short(h.SHA256))
	}
	row[3], row[4] = strings.Join(names, " "), strings.Join(hashes, " ")
	return row
}
