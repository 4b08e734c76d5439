package port

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// makefile has the variables of a Makefile. Recipes are not read, and nothing
// is executed.
type makefile struct {
	name      string // for messages
	root, dir string // of the checkout and of the file
	variables map[string]variable
	branches  int // line of the first conditional; 0: none
}

type variable struct {
	value string
	line  int
}

var (
	assignment  = regexp.MustCompile(`^\s*(?:(?:export|override)\s+)*([A-Za-z_][\w.]*)\s*(\?=|::?=|\+=|=)\s*(.*?)\s*$`)
	conditional = regexp.MustCompile(`^\s*(?:ifeq|ifneq|ifdef|ifndef)\b`)
)

// readMakefile reads the variables in a text. Both branches of a conditional
// count.
func readMakefile(name, dir, text string) *makefile {
	m := &makefile{name: name, dir: dir, variables: make(map[string]variable)}
	lines := strings.Split(strings.ReplaceAll(text, "\r", ""), "\n")
	for i := 0; i < len(lines); i++ {
		line, at := lines[i], i+1
		for strings.HasSuffix(line, `\`) && i+1 < len(lines) {
			i++
			line = strings.TrimSuffix(line, `\`) + " " + strings.TrimSpace(lines[i])
		}
		if strings.HasPrefix(line, "\t") {
			continue
		}
		if hash := strings.IndexByte(line, '#'); hash >= 0 && !strings.HasSuffix(line[:hash], `\`) {
			line = line[:hash]
		}
		if conditional.MatchString(line) && m.branches == 0 {
			m.branches = at
		}
		set := assignment.FindStringSubmatch(line)
		if set == nil {
			continue
		}
		old, known := m.variables[set[1]]
		switch {
		case set[2] == "?=" && known:
		case set[2] == "+=" && known:
			m.variables[set[1]] = variable{old.value + " " + set[3], old.line}
		default:
			m.variables[set[1]] = variable{set[3], at}
		}
	}
	return m
}

// at is the place of a variable, for messages.
func (m *makefile) at(name string) string {
	return fmt.Sprintf("%s:%d", m.name, m.variables[name].line)
}

// Limits of what a variable stands for; more is a mistake or an attack.
const (
	maxDepth    = 32
	maxExpanded = 1 << 16
)

// words expands the words of a variable. Words with a variable that has no
// value, or with a function that would have to be executed, are in unknown.
func (m *makefile) words(name string) (known, unknown []string, err error) {
	for _, word := range fieldsOf(m.variables[name].value) {
		text, ok, err := m.expand(word, 0)
		switch {
		case err != nil:
			return nil, nil, fmt.Errorf("%s: %s: %w", m.at(name), name, err)
		case !ok:
			unknown = append(unknown, word)
		default:
			known = append(known, strings.Fields(text)...)
		}
	}
	return known, unknown, nil
}

// fieldsOf divides a text at blanks outside brackets.
func fieldsOf(text string) (words []string) {
	depth, from := 0, 0
	for i := 0; i <= len(text); i++ {
		switch {
		case i == len(text) || depth == 0 && (text[i] == ' ' || text[i] == '\t'):
			if i > from {
				words = append(words, text[from:i])
			}
			from = i + 1
		case text[i] == '(' || text[i] == '{':
			depth++
		case (text[i] == ')' || text[i] == '}') && depth > 0:
			depth--
		}
	}
	return words
}

// expand replaces the variables in a text. ok is false if one has no value.
func (m *makefile) expand(text string, depth int) (out string, ok bool, err error) {
	if depth > maxDepth {
		return "", false, fmt.Errorf("%s stands for itself, or for more than %d variables in each other", text, maxDepth)
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '$' || i+1 == len(text) {
			b.WriteByte(text[i])
			continue
		}
		inside, end := reference(text[i+1:])
		i += end
		value, ok, err := m.value(inside, depth)
		if err != nil || !ok {
			return "", false, err
		}
		if b.WriteString(value); b.Len() > maxExpanded {
			return "", false, fmt.Errorf("stands for more than %d bytes", maxExpanded)
		}
	}
	return b.String(), true, nil
}

// reference returns what a $ at the beginning of s refers to, without brackets,
// and its length.
func reference(s string) (inside string, length int) {
	if s[0] != '(' && s[0] != '{' {
		return s[:1], 1
	}
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '(', '{':
			depth++
		case ')', '}':
			if depth--; depth == 0 {
				return s[1:i], i + 1
			}
		}
	}
	return s[1:], len(s)
}

// value is the value of a variable or of the function wildcard.
func (m *makefile) value(inside string, depth int) (value string, ok bool, err error) {
	if inside == "$" {
		return "$", true, nil
	}
	if inside == "PWD" || inside == "CURDIR" {
		return m.dir, true, nil
	}
	if pattern, is := strings.CutPrefix(inside, "wildcard "); is {
		pattern, ok, err := m.expand(pattern, depth+1)
		if err != nil || !ok {
			return "", ok, err
		}
		var files []string
		for _, one := range strings.Fields(pattern) {
			if !filepath.IsAbs(one) {
				one = filepath.Join(m.dir, one)
			}
			if rel, err := filepath.Rel(m.root, one); err != nil {
				return "", false, fmt.Errorf("wildcard %s: %w", pattern, err)
			} else if !filepath.IsLocal(rel) {
				return "", false, nil // outside the checkout
			}
			found, err := filepath.Glob(one)
			if err != nil {
				return "", false, fmt.Errorf("wildcard %s: %w", pattern, err)
			}
			for _, f := range found {
				if rel, err := filepath.Rel(m.dir, f); err == nil {
					files = append(files, rel)
				}
			}
		}
		slices.Sort(files)
		return strings.Join(files, " "), true, nil
	}
	v, known := m.variables[inside]
	if !known {
		return "", false, nil
	}
	return m.expand(v.value, depth+1)
}
