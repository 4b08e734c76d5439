package build

import "strings"

// comments are the comments of a source in C, by line from 1.
type comments struct {
	beside map[int]string // behind code of the line
	above  map[int]string // comments on their own lines, by the line below their end
	first  string         // at the beginning of the file
	head   int            // line below it
	all    []comment
}

// comment is the text of a comment, without its marks.
type comment struct {
	text string
	line int // where it begins
}

// readComments finds the comments of a source in C. Consecutive lines of // are
// one comment.
func readComments(src string) *comments {
	c := &comments{beside: make(map[int]string), above: make(map[int]string)}
	line, code, seen := 1, false, false // is there code before, on the line or in the file?
	for i := 0; i < len(src); i++ {
		switch ch := src[i]; {
		case ch == '\n':
			line, code = line+1, false
		case strings.HasPrefix(src[i:], "//"), strings.HasPrefix(src[i:], "/*"):
			text, end := cutComment(src[i:])
			c.add(text, line, line+strings.Count(src[i:i+end], "\n"), code, seen)
			line += strings.Count(src[i:i+end], "\n")
			i += end - 1
		case ch == '"' || ch == '\'':
			end := quoted(src[i:])
			line += strings.Count(src[i:i+end], "\n")
			i += end - 1
			code, seen = true, true
		case ch != ' ' && ch != '\t' && ch != '\r':
			code, seen = true, true
		}
	}
	return c
}

// cutComment cuts the comment at the beginning of s: its text and its end.
func cutComment(s string) (text string, end int) {
	if strings.HasPrefix(s, "//") {
		end = strings.IndexByte(s, '\n')
		if end < 0 {
			end = len(s)
		}
		return s[2:end], end
	}
	inside, _, closed := strings.Cut(s[2:], "*/")
	if !closed {
		return inside, len(s)
	}
	var lines []string
	for line := range strings.Lines(inside) {
		line = strings.TrimSpace(line)
		lines = append(lines, strings.TrimPrefix(strings.TrimLeft(line, "*"), " "))
	}
	return strings.Join(lines, "\n"), 2 + len(inside) + 2
}

// quoted returns the length of the literal at the beginning of s.
func quoted(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case s[0], '\n': // end of line: not a literal after all
			return i + 1
		}
	}
	return len(s)
}

// add notes a comment with its first and last line. Directives describe
// nothing.
func (c *comments) add(text string, from, to int, behindCode, behindAny bool) {
	c.all = append(c.all, comment{text, from})
	if _, is := directiveOf(text); is {
		return
	}
	if !behindAny && (c.first == "" || c.head == from) {
		c.first += text + "\n"
		c.head = to + 1
	}
	if behindCode {
		c.beside[from] = text
		return
	}
	if before, more := c.above[from]; more {
		delete(c.above, from)
		text = before + "\n" + text
	}
	c.above[to+1] = text
}

// of returns the description of the declaration in a line.
func (c *comments) of(line int) string {
	if c == nil {
		return ""
	}
	if text, is := c.beside[line]; is {
		return oneLine(text)
	}
	return oneLine(c.above[line])
}
