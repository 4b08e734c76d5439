package port

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// source is what the text of a C file says about handlers.
type source struct {
	name     string // for messages
	code     string // without comments and the contents of literals, with the same lines
	handlers []function
	sets     []set // of its functions init_handlers
	includes []string
	unread   int // line of the first __handler__ that none of handlers has; 0: none
}

// function is a function of a source.
type function struct {
	name, body string
	line       int
}

// set is handlers that run on the packets of one entry.
type set struct {
	name     string
	handlers [3]string // header, payload and completion handler; "": none
	from     string    // where it stands
	why      string    // how its handlers were put together, if nothing in the source says so
	state    string    // type of its state in the paper's toolchain; "": none
}

// names lists the handlers of a set.
func (s *set) names() []string {
	return slices.DeleteFunc(slices.Clone(s.handlers[:]), func(h string) bool { return h == "" })
}

var (
	marked    = regexp.MustCompile(`__handler__\s+(?:(?:static|inline|extern)\s+)*void\s+(\w+)\s*\(`)
	defined   = regexp.MustCompile(`#\s*define\s+__handler__`)
	mark      = regexp.MustCompile(`(?m)^.*?\b__handler__\b`)
	portals   = regexp.MustCompile(`(?m)^\s*void\s+(\w+)\s*\(\s*void\s*\*\s*\w+\s*,\s*void\s*\*\s*\w+\s*\)`)
	initiates = regexp.MustCompile(`\bvoid\s+(init_handlers\w*)\s*\(`)
	listed    = regexp.MustCompile(`\[\s*\w*\s*\]\s*=\s*\{([^{}]*)\}`)
	stored    = regexp.MustCompile(`\*\s*(\w+)\s*=\s*(?:\(\s*handler_fn\s*\)\s*)?&?\s*(\w+)\s*;`)
	included  = regexp.MustCompile(`(?m)^\s*#\s*include\s*[<"]([^>"]+)[>"]`)
	casts     = regexp.MustCompile(`\(\s*(\w+)\s*\*\s*\)\s*state\b`)
)

// readSource reads the text of a file.
func readSource(name, text string) *source {
	s := &source{name: name, code: withoutComments(text)}
	for _, m := range included.FindAllStringSubmatch(text, -1) {
		s.includes = append(s.includes, m[1])
	}
	s.handlers = s.functions(marked)
	heads := marked.FindAllStringIndex(s.code, -1)
	for _, m := range mark.FindAllStringIndex(s.code, -1) {
		known := slices.ContainsFunc(heads, func(h []int) bool { return h[0] < m[1] && m[1] <= h[1] })
		if !known && !defined.MatchString(s.code[m[0]:m[1]]) {
			s.unread = 1 + strings.Count(s.code[:m[1]], "\n")
			break
		}
	}
	if len(s.handlers) == 0 && s.includesFile("smp.h") {
		s.handlers = s.functions(portals)
	}
	for _, f := range s.functions(initiates) {
		if one, ok := setOf(&f); ok {
			one.from = fmt.Sprintf("%s:%d", name, f.line)
			s.sets = append(s.sets, one)
		}
	}
	return s
}

// includesFile reports whether a header is included, from whatever folder.
func (s *source) includesFile(name string) bool {
	return slices.ContainsFunc(s.includes, func(i string) bool { return i == name || strings.HasSuffix(i, "/"+name) })
}

// functions finds functions with bodies. Of two with the same name, in branches
// of the preprocessor, the first counts.
func (s *source) functions(head *regexp.Regexp) (list []function) {
	for _, m := range head.FindAllStringSubmatchIndex(s.code, -1) {
		f := function{name: s.code[m[2]:m[3]], line: 1 + strings.Count(s.code[:m[2]], "\n")}
		open := strings.IndexAny(s.code[m[3]:], "{;")
		if open < 0 || s.code[m[3]+open] == ';' || slices.ContainsFunc(list, func(o function) bool { return o.name == f.name }) {
			continue
		}
		f.body = block(s.code[m[3]+open:])
		list = append(list, f)
	}
	return list
}

// block returns the text up to the bracket that closes the first.
func block(s string) string {
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return s[:i+1]
			}
		}
	}
	return s
}

// setOf reads which handlers a function init_handlers hands out.
func setOf(f *function) (s set, ok bool) {
	var names []string
	if m := listed.FindStringSubmatch(f.body); m != nil {
		for name := range strings.SplitSeq(m[1], ",") {
			if name = strings.Trim(strings.TrimSpace(name), "&"); name != "" {
				names = append(names, name)
			}
		}
	} else {
		given := make(map[string]string)
		for _, m := range stored.FindAllStringSubmatch(f.body, -1) {
			given[m[1]] = m[2]
		}
		names = []string{given["hh"], given["ph"], given["th"]}
	}
	for i, name := range names {
		if i < len(s.handlers) && name != "NULL" && name != "0" && name != "" {
			s.handlers[i], ok = name, true
		}
	}
	if !ok || len(names) < len(s.handlers) {
		return s, false
	}
	s.name = commonName(s.handlers[:])
	return s, true
}

// commonName is what handlers of a set are called without the part that tells
// them apart.
func commonName(handlers []string) string {
	common := ""
	for _, h := range handlers {
		if h == "" {
			continue
		}
		for _, end := range []string{"_hh", "_ph", "_th"} {
			h = strings.TrimSuffix(h, end)
		}
		if common == "" {
			common = h
		}
		n := 0
		for n < min(len(common), len(h)) && common[n] == h[n] {
			n++
		}
		common = common[:n]
	}
	if common = strings.Trim(common, "_"); common == "" { // nothing in common: the first has to do
		common = handlers[slices.IndexFunc(handlers, func(h string) bool { return h != "" })]
	}
	return common
}

// withoutComments replaces comments and the contents of literals by blanks. The
// lines stay.
func withoutComments(text string) string {
	out := []byte(text)
	blank := func(from, to int) {
		for i := from; i < to && i < len(out); i++ {
			if out[i] != '\n' {
				out[i] = ' '
			}
		}
	}
	for i := 0; i < len(text); i++ {
		end := i + 1
		switch {
		case strings.HasPrefix(text[i:], "//"):
			if n := strings.IndexByte(text[i:], '\n'); n >= 0 {
				end = i + n
			} else {
				end = len(text)
			}
			blank(i, end)
		case strings.HasPrefix(text[i:], "/*"):
			end = len(text)
			if n := strings.Index(text[i+2:], "*/"); n >= 0 {
				end = i + n + 4
			}
			blank(i, end)
		case text[i] == '"' || text[i] == '\'':
			for end < len(text) && text[end] != text[i] && text[end] != '\n' {
				if text[end] == '\\' {
					end++
				}
				end++
			}
			blank(i+1, end)
			end++
		}
		i = end - 1
	}
	return string(out)
}

// field is a number of a state in the paper's toolchain.
type field struct {
	name, typ string // the type as in a scenario
	count     string
}

// plain are the types of fields that a scenario can name.
var plain = map[string]string{
	"uint8_t": "u8", "uint16_t": "u16", "uint32_t": "u32", "uint64_t": "u64", "int8_t": "i8", "int16_t": "i16", "int32_t": "i32", "int64_t": "i64",
	"int": "i32", "unsigned": "u32", "char": "i8", "float": "f32", "double": "f64", "ptl_size_t": "u32", "size_t": "u32",
}

var member = regexp.MustCompile(`^\s*(\w+)\s+(\w+)\s*(?:\[\s*(\w+)\s*\])?\s*$`)

// structure reads the fields of a type that is a struct of numbers.
func (s *source) structure(name string) (list []field, err error) {
	at := regexp.MustCompile(`\}\s*` + regexp.QuoteMeta(name) + `\s*;`).FindStringIndex(s.code)
	if at == nil {
		return nil, fmt.Errorf("type %s: no struct of that name", name)
	}
	open := strings.LastIndexByte(s.code[:at[0]], '{')
	if open < 0 {
		return nil, fmt.Errorf("type %s: no struct of that name", name)
	}
	for text := range strings.SplitSeq(s.code[open+1:at[0]], ";") {
		if strings.TrimSpace(text) == "" {
			continue
		}
		m := member.FindStringSubmatch(text)
		if m == nil || plain[m[1]] == "" {
			return nil, fmt.Errorf("type %s: %s: not a number", name, strings.Join(strings.Fields(text), " "))
		}
		list = append(list, field{m[2], plain[m[1]], m[3]})
	}
	return list, nil
}
