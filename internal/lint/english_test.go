package lint

import (
	"bytes"
	"regexp"
	"strings"
	"unicode/utf8"
)

// maxComment is how wide a line with a comment may be, in characters; a tab
// counts as one. Comments are best at 80 columns.
const maxComment = 100

// banned are phrases that make the reader go back: say the noun, or the verb.
// For example write "it is as large as the page" and "the field is the data to
// send".
var banned = []*regexp.Regexp{
	regexp.MustCompile(`\b(is|are|was|were|be|has|have|as|like) (that|those) (of|for|in|on|at|from)\b`),
	regexp.MustCompile(`\b([Ss]ays?|[Kk]nows?|[Tt]ells?) what\b`),
}

// english keeps comments narrow and plain.
func english(r *report) {
	for _, s := range r.tree.sources {
		if s.generated() {
			continue
		}
		lines := bytes.Split(s.text, []byte("\n"))
		for _, group := range s.ast.Comments {
			if strings.HasPrefix(group.Text(), "Output:") {
				continue // of an example: the program's words
			}
			for _, comment := range group.List {
				line := lines[r.tree.line(comment.Pos())-1]
				directive := strings.HasPrefix(comment.Text, "//\t") || strings.HasPrefix(comment.Text, "//go:") || strings.HasPrefix(comment.Text, "//lint:") || strings.HasPrefix(comment.Text, "//spin:") || strings.HasPrefix(comment.Text, "//nolint")
				if n := utf8.RuneCount(line); n > maxComment && !directive && !bytes.Contains(line, []byte("://")) {
					r.at(s, comment.Pos(), "%d columns, at most %d", n, maxComment)
				}
			}
			text := strings.Join(strings.Fields(group.Text()), " ")
			for _, phrase := range banned {
				if found := phrase.FindString(text); found != "" {
					r.at(s, group.Pos(), "%q: say it plainly", found)
				}
			}
		}
	}
}
