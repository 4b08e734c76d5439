//go:build !tinygo

package graph

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spinsim/spinsim/internal/memory"
)

const (
	maxLine  = 1 << 16
	expected = "expected two vertices and perhaps a weight"
)

// Read reads a graph. Each line is an edge: two vertices from 0 and, if it is
// not 1, the weight, separated by blanks. Empty lines and lines that begin with
// # or % are ignored. The vertices are all numbers up to the largest one in the
// file. A file that begins with the banner of MatrixMarket is read in that
// format (R. F. Boisvert, R. Pozo, K. A. Remington, "The Matrix Market Exchange
// Formats", NISTIR 5935, 1996). Errors name the file and the line.
func Read(name string, r io.Reader) (*Graph, error) {
	l := &lines{scanner: bufio.NewScanner(r)}
	l.scanner.Buffer(make([]byte, 0, maxLine), maxLine)
	var g *Graph
	text, err := l.next()
	switch {
	case errors.Is(err, io.EOF):
		err = errNoEdge
	case err == nil && isBanner(text):
		g, err = readMatrix(l, text)
	case err == nil:
		g, err = readList(l, text)
	}
	if err != nil {
		return nil, fmt.Errorf("%s:%d: %w", name, l.number, err)
	}
	return g, nil
}

// lines reads a file line by line.
type lines struct {
	scanner *bufio.Scanner
	number  int // of the last line read, from 1
}

// next returns a line without the blanks around it, or io.EOF at the end.
func (l *lines) next() (string, error) {
	l.number++
	if l.scanner.Scan() {
		return strings.TrimSpace(l.scanner.Text()), nil
	}
	switch err := l.scanner.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return "", fmt.Errorf("a line of more than %d bytes, %s", maxLine, expected)
	case err != nil:
		return "", err
	}
	return "", io.EOF
}

// errNoEdge is the error for a list without edges.
var errNoEdge = errors.New("the file ends without an edge, expected lines of two vertices and perhaps a weight")

// readList reads lines of edges; text is the first line.
func readList(l *lines, text string) (*Graph, error) {
	var list []Edge
	most := uint32(0)
	var err error
	for ; err == nil; text, err = l.next() {
		if isBanner(text) {
			return nil, errors.New("the banner of MatrixMarket, expected on the first line")
		}
		if text == "" || text[0] == '#' || text[0] == '%' {
			continue
		}
		e, err := edge(strings.Fields(text))
		if err != nil {
			return nil, err
		}
		most = max(most, e.From, e.To)
		list = memory.Append(list, e)
	}
	switch {
	case !errors.Is(err, io.EOF):
		return nil, err
	case len(list) == 0:
		return nil, errNoEdge
	}
	return New(int(most)+1, list), nil
}

// edge parses an edge.
func edge(fields []string) (Edge, error) {
	if len(fields) == 1 {
		return Edge{}, fmt.Errorf("1 field, %s", expected)
	}
	if len(fields) > 3 {
		return Edge{}, fmt.Errorf("%d fields, %s", len(fields), expected)
	}
	one := [3]uint32{2: 1}
	for i, f := range fields {
		n, err := strconv.ParseUint(f, 10, 32)
		switch {
		case i < 2 && (err != nil || n >= MaxVertices):
			return Edge{}, fmt.Errorf("vertex %.40q, expected a number from 0 to %d", f, MaxVertices-1)
		case i == 2 && (err != nil || n == 0 || n > MaxWeight):
			return Edge{}, fmt.Errorf("weight %.40q, expected a number from 1 to %d", f, MaxWeight)
		}
		one[i] = uint32(n)
	}
	return Edge{one[0], one[1], one[2]}, nil
}
