// Package visible makes characters visible that a reader cannot see or that
// command a terminal. A name from a module or a file may hold them: ESC starts
// a command of the terminal, and U+202E turns the rest of a line around.
//
// Characters that [unicode.IsGraphic] refuses are written as
// [strconv.QuoteToGraphic] writes them, such as \x1b and \u202e, but always as
// an escape that JSON has as well. So a JSON document keeps its values.
package visible

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Line returns a text of one line: line ends and tabs are made visible, too, so
// that a name cannot forge a line or a column.
func Line(s string) string { return made(s, "") }

// Text returns a text of several lines.
func Text(s string) string { return made(s, "\n\t") }

// made makes what s hides visible, except for some characters.
func made(s, except string) string {
	at := hidden(s, except)
	if at < 0 {
		return s
	}
	var b strings.Builder
	for at >= 0 {
		b.WriteString(s[:at])
		r, n := utf8.DecodeRuneInString(s[at:])
		b.WriteString(escaped(r, s[at:at+n]))
		s = s[at+n:]
		at = hidden(s, except)
	}
	b.WriteString(s)
	return b.String()
}

// hidden returns where the first character is that has to be made visible; -1:
// there is none.
func hidden(s, except string) int {
	for i, r := range s {
		if r >= ' ' && r < 0x7f || unicode.IsGraphic(r) && r != utf8.RuneError || strings.ContainsRune(except, r) {
			continue
		}
		if _, n := utf8.DecodeRuneInString(s[i:]); r != utf8.RuneError || n == 1 {
			return i
		}
	}
	return -1
}

// escaped returns the visible form of a character and its bytes.
func escaped(r rune, raw string) string {
	switch {
	case r == utf8.RuneError: // no UTF-8
		return fmt.Sprintf(`\x%02x`, raw[0])
	case r < ' ':
		return strings.Trim(strconv.QuoteRune(r), "'")
	case r > 0xffff:
		high, low := utf16.EncodeRune(r)
		return fmt.Sprintf(`\u%04x\u%04x`, high, low)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

// Writer passes text of several lines on as [Text] returns it. It may be used
// by several goroutines.
type Writer struct {
	to    io.Writer
	lines *strings.Replacer
	mu    sync.Mutex // of rest
	rest  []byte     // the beginning of a character whose end is not written yet
}

// NewWriter returns a Writer for another one. Wherever one of the lines is
// written in one piece it appears as [Line] returns it.
func NewWriter(to io.Writer, lines ...string) *Writer {
	var pairs []string
	for _, line := range lines {
		if strings.ContainsAny(line, "\n\t") && strings.TrimSpace(line) != "" {
			pairs = append(pairs, line, Line(line))
		}
	}
	return &Writer{to: to, lines: strings.NewReplacer(pairs...)}
}

// Exact returns the writer behind it, for bytes that are no text.
func (w *Writer) Exact() io.Writer { return w.to }

// Write writes text.
func (w *Writer) Write(b []byte) (int, error) {
	w.mu.Lock()
	text := b
	if len(w.rest) > 0 {
		text = append(w.rest, b...)
	}
	n := len(text)
	for i := n - 1; i >= 0 && i >= n-utf8.UTFMax; i-- {
		if utf8.RuneStart(text[i]) {
			if !utf8.FullRune(text[i:]) {
				n = i
			}
			break
		}
	}
	w.rest = append([]byte(nil), text[n:]...)
	w.mu.Unlock() // a full pipe must not keep another goroutine from ending the program
	if n > 0 {
		if _, err := io.WriteString(w.to, Text(w.lines.Replace(string(text[:n])))); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

// Flush writes the beginning of a character that was never completed.
func (w *Writer) Flush() error {
	w.mu.Lock()
	rest := w.rest
	w.rest = nil
	w.mu.Unlock()
	if len(rest) == 0 {
		return nil
	}
	_, err := io.WriteString(w.to, Text(string(rest)))
	return err
}
