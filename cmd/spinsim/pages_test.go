package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
)

// A page of docs/figures shows the runs of an experiment that reproduce a
// publication. The experiment provides its text, and the commands above its
// blocks print them. -update writes all pages; with -run TestFigurePages/NAME
// it writes the page of one experiment.
type figurePage struct {
	of   *experiment.Experiment
	runs []*experiment.PublicationRun
}

var (
	figures = filepath.Join("..", "..", "docs", "figures")
	images  = filepath.Join("..", "..", "docs", "images")
)

// The page of an experiment has the text of its definition. With -documents it
// also has the rows that the quick choice of each run prints. -everything
// compares whole pages and their pictures, and requires a page for every
// experiment of a publication. Until then a new experiment is one file.
func TestFigurePages(t *testing.T) {
	t.Parallel()
	index := "<!-- go test ./cmd/spinsim -run TestFigurePages -update writes this page -->\n# Published figures\n\nOne page for each experiment that reproduces a publication: what is measured, the command, what it prints, and how far the published numbers are. " +
		"`spinsim reproduce PUBLICATION --full -o FOLDER` measures all of a publication again.\n"
	names := []string{"README.md"}
	for _, p := range experiment.Publications() {
		index += fmt.Sprintf("\n## %s\n\n| experiment | measures | of |\n| --- | --- | --- |\n", p.Title)
		for _, e := range p.Experiments {
			page := figurePage{of: e}
			for i := range p.Runs {
				if r := &p.Runs[i]; r.Experiment == e.Name {
					page.runs = append(page.runs, r)
				}
			}
			require.NotEmpty(t, page.runs, "%s has no run of %s: expected a Source that begins with its tag, or a run in Publication.Runs", e.Name, p.Name)
			name := e.Name + ".md"
			if _, err := os.Stat(filepath.Join(figures, name)); err != nil && !*update && !*everything {
				continue
			}
			index += fmt.Sprintf("| [%s](%s) | %s | %s |\n", e.Name, name, e.Short, e.Source)
			names = append(names, name)
			t.Run(e.Name, func(t *testing.T) {
				t.Parallel()
				page.check(t, filepath.Join(figures, name))
			})
		}
	}
	sameText(t, index, filepath.Join(figures, "README.md"))
	there, err := filepath.Glob(filepath.Join(figures, "*"))
	require.NoError(t, err)
	for _, name := range there {
		require.Contains(t, names, filepath.Base(name), "%s is of no experiment", name)
	}
}

// sameText compares a text with a file, or writes the file with -update.
func sameText(t *testing.T, text, file string) {
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	shown, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, text, string(shown), "%s differs; go test ./cmd/spinsim -run TestFigurePages -update writes it anew", file)
}

func (p *figurePage) check(t *testing.T, file string) {
	var blocks []string
	if *update || *everything {
		for _, r := range p.runs {
			blocks = append(blocks, draw(t, r))
		}
	} else {
		shown, err := os.ReadFile(file)
		require.NoError(t, err)
		rest := string(shown)
		for _, r := range p.runs {
			_, after, ok := strings.Cut(rest, commandBlock(r))
			require.True(t, ok, "%s does not show spinsim %s", file, strings.Join(arguments(r, true), " "))
			block, after, ok := strings.Cut(after, "```\n")
			require.True(t, ok)
			if *documents {
				showsQuickly(t, block, r)
			}
			meets(t, block, r)
			blocks, rest = append(blocks, block), after
		}
	}
	sameText(t, p.text(blocks), file)
}

// arguments returns the command of a run.
func arguments(r *experiment.PublicationRun, full bool) []string {
	c := r.Choice(full)
	args := []string{"compare", r.Experiment}
	for _, flag := range [][2]string{{"experiment", r.Preset}, {"profile", c.Profiles}, {"waterfall", c.Waterfall}} {
		if flag[1] != "" {
			args = append(args, "--"+flag[0], flag[1])
		}
	}
	for value := range strings.FieldsSeq(c.Values) {
		axis, list, _ := strings.Cut(value, "=")
		args = append(args, "--"+axis, list)
	}
	return args
}

// commandBlock returns the lines above the output of a run.
func commandBlock(r *experiment.PublicationRun) string {
	return "```sh\nspinsim " + strings.Join(arguments(r, true), " ") + "\n```\n\n```\n"
}

// draw returns the output of a run's command, and draws its picture if it has
// one.
func draw(t *testing.T, r *experiment.PublicationRun) string {
	args, picture := arguments(r, true), filepath.Join(images, r.Name(true)+".svg")
	drawn := filepath.Join(t.TempDir(), "x.svg")
	if r.Full.Waterfall == "" {
		args = append(args, "--plot", drawn)
	}
	var out, errs bytes.Buffer
	status := run(args, &out, &errs)
	if r.Full.Waterfall == "" && status == exitOK {
		samePicture(t, drawn, picture)
	} else {
		require.True(t, status == exitOK || strings.HasPrefix(errs.String(), "spinsim: plot "), "%s", &errs)
		require.NoFileExists(t, picture, "%s", &errs)
	}
	return strings.TrimRight(out.String(), "\n") + "\n"
}

// brief are values in place of quick choices that take seconds, by names of
// runs. What they leave out is measured with -everything.
var brief = map[string]string{
	"matching":      "ranks=64",
	"bcast":         "ranks=4,64 mode=rdma,p4,spin-stream", // README.md has 1,024
	"exanet":        "path=intra-qfdb size=0,64,4MiB mode=mailbox,mpi",
	"npf-instances": "instances=1 mode=npf",
	"apps":          "ranks=4 app=hpl",
}

// showsQuickly requires that a block has the rows of the quick choice.
func showsQuickly(t *testing.T, block string, r *experiment.PublicationRun) {
	if r.Quick.Skip {
		return
	}
	full, quick := pointNames(t, r, true), pointNames(t, r, false)
	for _, name := range quick {
		require.Contains(t, full, name, "the quick choice of %s is no part of the full one", r.Name(true))
	}
	if values, ok := brief[r.Name(false)]; ok {
		shorter := *r
		shorter.Quick.Values = values
		r = &shorter
		require.Subset(t, quick, pointNames(t, r, false))
	}
	rows := tableRows(block)
	for _, row := range tableRows(string(output(t, arguments(r, false)...))) {
		require.True(t, slices.ContainsFunc(rows, func(of []string) bool { return isPart(row, of) || isPart(of, row) }), "spinsim %s prints %q, which its page does not show; "+
			"go test ./cmd/spinsim -run TestFigurePages/%s -update writes it anew", strings.Join(arguments(r, false), " "), strings.Join(row, " "), r.Experiment)
	}
}

// deviation is a cell of a table: how far a number is from the published one.
var deviation = regexp.MustCompile(`^[+-]([0-9.]+)%$`)

// meets requires that the last term of a way to published numbers comes within 6%
// of each, and closer than the first.
func meets(t *testing.T, block string, r *experiment.PublicationRun) {
	e, err := experiment.Find(r.Experiment)
	require.NoError(t, err)
	term := e.Axis("term")
	// the way of npf-storage is for one of two memories
	if r.Preset != "waterfall" || term == nil || e.Name == "npf-storage" {
		return
	}
	off := map[string]float64{}
	for _, row := range tableRows(block) {
		for _, word := range row {
			if m := deviation.FindStringSubmatch(word); m != nil && slices.Contains(term.Of, row[0]) {
				is, err := strconv.ParseFloat(m[1], 64)
				require.NoError(t, err, word)
				off[row[0]] = max(off[row[0]], is)
			}
		}
	}
	first, last := off[term.Of[1]], off[term.Of[len(term.Of)-1]]
	require.Less(t, last, 6.0, block)
	require.Greater(t, first, last, block)
}

// pointNames names the points of a run.
func pointNames(t *testing.T, r *experiment.PublicationRun, full bool) (names []string) {
	s, err := r.Sweep(full)
	require.NoError(t, err)
	points, err := s.Points()
	require.NoError(t, err)
	for _, p := range points {
		names = append(names, p.String())
	}
	return names
}

// tableRows returns the words of each row of the tables in a text.
func tableRows(text string) (rows [][]string) {
	inside := false
	for line := range strings.Lines(text) {
		switch words := strings.Fields(line); {
		case len(words) == 0:
			inside = false
		case strings.HasPrefix(line, "──"):
			inside = true
		case inside:
			rows = append(rows, words)
		}
	}
	return rows
}

// isPart reports whether the words of a row stand in another row in this order.
// A table of other points may lack columns, for example of a series.
func isPart(row, of []string) bool {
	for _, word := range row {
		at := slices.IndexFunc(of, func(o string) bool { return o == word || sameRounded(o, word) })
		if at < 0 {
			return false
		}
		of = of[at+1:]
	}
	return true
}

// sameRounded reports whether two words are the same number with more or fewer
// decimals. A column has as many decimals as its values need.
func sameRounded(a, b string) bool {
	read := func(word string) (value float64, decimals int, unit string, err error) {
		number := strings.TrimRight(word, "×%")
		_, after, _ := strings.Cut(number, ".")
		value, err = strconv.ParseFloat(strings.ReplaceAll(number, ",", ""), 64)
		return value, len(after), word[len(number):], err
	}
	x, decimalsX, unitX, errX := read(a)
	y, decimalsY, unitY, errY := read(b)
	return errX == nil && errY == nil && unitX == unitY && math.Abs(x-y) <= 0.51*math.Pow10(-min(decimalsX, decimalsY))
}

// text returns the page with the outputs of its runs.
func (p *figurePage) text(blocks []string) string {
	e := p.of
	var b strings.Builder
	fmt.Fprintf(&b, "<!-- go test ./cmd/spinsim -run TestFigurePages/%s -update writes this page -->\n# %s\n\n", e.Name, e.Name)
	fmt.Fprintf(&b, "%s%s. Source: %s.\n\n%s## Parameters\n\n", strings.ToUpper(e.Short[:1]), e.Short[1:], e.Source, paragraphs(e.Long))
	fmt.Fprintf(&b, "Devices and networks: `%s`.\n\n| flag | values | |\n| --- | --- | --- |\n", strings.Join(e.DefaultProfiles(), "`, `"))
	for i := range e.Axes {
		if a := &e.Axes[i]; !a.Fixed() {
			fmt.Fprintf(&b, "| `--%s` | %s | %s |\n", a.Name, a.DefaultList(), strings.ReplaceAll(a.Help, "|", "\\|"))
		}
	}
	for i, r := range p.runs {
		title := "Result"
		for _, preset := range e.Presets {
			if preset.Name == r.Preset {
				title = strings.ToUpper(preset.Short[:1]) + preset.Short[1:]
			}
		}
		if from, to, ok := strings.Cut(r.Full.Waterfall, ","); ok {
			title = "From " + from + " to " + to
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s%s```\n", title, commandBlock(r), blocks[i])
		picture := r.Name(true) + ".svg"
		if _, err := os.Stat(filepath.Join(images, picture)); err == nil {
			fmt.Fprintf(&b, "\n![%s](../images/%s)\n", e.Title(), picture)
		}
	}
	return b.String()
}

// item is a line of a manual that explains a value: its name, two or more
// spaces, and the explanation.
var item = regexp.MustCompile(`^ {1,4}(\S.*?)(?: {2,}(.*))?$`)

// paragraphs turns a manual into Markdown. Indented lines become a list; lines
// with more indent continue its last point.
func paragraphs(manual string) string {
	var b strings.Builder
	list := false
	for line := range strings.SplitSeq(manual, "\n") {
		m := item.FindStringSubmatch(line)
		switch {
		case m != nil:
			if !list {
				b.WriteString("\n")
			}
			fmt.Fprintf(&b, "- `%s`: ", m[1])
			if m[2] != "" {
				b.WriteString(m[2] + "\n")
			}
		// a long name has a line of its own
		case strings.HasPrefix(line, " ") && strings.HasSuffix(b.String(), ": "):
			b.WriteString(strings.TrimSpace(line) + "\n")
		case strings.HasPrefix(line, " "):
			b.WriteString("  " + strings.TrimSpace(line) + "\n")
		default:
			if list {
				b.WriteString("\n")
			}
			b.WriteString(line + "\n")
		}
		list = strings.HasPrefix(line, " ")
	}
	return strings.TrimLeft(b.String(), "\n") + "\n"
}
