package edges

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

const (
	maxLine  = 1 << 16
	expected = "expected two vertices and perhaps a weight"
)

// Read reads a graph: a line for each edge, two vertices from 0 and, if it is not 1, the weight, with blanks between; empty lines and those that begin with
// # or % count for nothing. The vertices are those up to the largest that is named. Errors name the file and the line.
func Read(name string, r io.Reader) (*Graph, error) {
	var list []Edge
	most := uint32(0)
	scanner := bufio.NewScanner(r)
	scanner.Buffer(make([]byte, 0, maxLine), maxLine)
	line := 1
	for ; scanner.Scan(); line++ {
		text := strings.TrimSpace(scanner.Text())
		if text == "" || text[0] == '#' || text[0] == '%' {
			continue
		}
		e, err := edge(strings.Fields(text))
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, line, err)
		}
		most = max(most, e.From, e.To)
		list = append(list, e)
	}
	err := scanner.Err()
	switch {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("%s:%d: a line of more than %d bytes, %s", name, line, maxLine, expected)
	case err != nil:
		return nil, fmt.Errorf("%s:%d: %w", name, line, err)
	case len(list) == 0:
		return nil, fmt.Errorf("%s:%d: the file ends without an edge, expected lines of two vertices and perhaps a weight", name, line)
	}
	return New(int(most)+1, list), nil
}

// edge reads one.
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
