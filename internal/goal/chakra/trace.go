package chakra

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// maxDeps bounds the nodes and the dependencies of a file: their places have 32
// bits.
const maxDeps = 1<<32 - 2

// trace is the trace of one NPU. Reading another one uses the same memory.
type trace struct {
	file   string
	header header
	nodes  []node           // in order of their ids
	deps   []uint64         // of all nodes: first ids, then indices of nodes
	names  []string         // of groups
	places map[string]int32 // of the names
	groups map[string][]int // by name, as the trace tells them
	notes  *notes
}

// at returns an error about a node.
func (t *trace) at(n *node, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &Error{File: t.file, Place: fmt.Sprintf("node %d", n.id), Msg: err.Error()}
}

// group returns the index of the name of a group, -1 for all NPUs.
func (t *trace) group(name string) int32 {
	if name == "" || name == "0" {
		return -1
	}
	i, there := t.places[name]
	if !there {
		i = int32(len(t.names))
		t.places[name] = i
		t.names = append(t.names, name)
	}
	return i
}

// define takes the process groups that PyTorch's record of them tells.
func (t *trace) define(values []byte) {
	if len(values) == 0 {
		return
	}
	var list []struct {
		Name  any   `json:"pg_name"`
		Ranks []int `json:"ranks"`
	}
	// the list is a text within a list of one text
	text := strings.TrimSuffix(strings.TrimPrefix(string(values), "['"), "']")
	text = strings.TrimSuffix(strings.TrimPrefix(text, `["`), `"]`)
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.notes.metadata++
		return
	}
	for _, g := range list {
		if len(g.Ranks) > 0 {
			t.groups[fmt.Sprint(g.Name)] = g.Ranks
		}
	}
}

// read reads the file of an NPU.
func (t *trace) read(file string, in io.Reader) error {
	*t = trace{file: file, nodes: t.nodes[:0], deps: t.deps[:0], places: make(map[string]int32), groups: make(map[string][]int), notes: t.notes}
	m := messages{in: bufio.NewReaderSize(in, 1<<16), file: file}
	s, err := m.next()
	if errors.Is(err, io.EOF) {
		return &Error{File: file, Msg: "the file is empty, expected a trace"}
	}
	if err == nil {
		err = t.header.read(s)
	}
	if err == nil {
		err = t.header.check(file)
	}
	for err == nil {
		if s, err = m.next(); err == nil {
			err = t.node(s)
		}
	}
	if !errors.Is(err, io.EOF) {
		return err
	}
	return t.resolve()
}

// resolve puts the nodes in order of their ids, and turns the ids of
// dependencies into indices.
func (t *trace) resolve() error {
	byID := func(a, b node) int { return cmp.Compare(a.id, b.id) }
	if !slices.IsSortedFunc(t.nodes, byID) {
		slices.SortFunc(t.nodes, byID)
	}
	for i := range t.nodes {
		n := &t.nodes[i]
		if i > 0 && n.id == t.nodes[i-1].id {
			return t.at(n, "two nodes have this id")
		}
		before := t.before(i)
		for k, id := range before {
			at, there := t.find(id)
			if !there {
				return t.at(n, "depends on node %d, which the file does not have", id)
			}
			before[k] = uint64(at)
		}
	}
	return nil
}

// find returns the index of a node. The ids of most traces are consecutive.
func (t *trace) find(id uint64) (at int, there bool) {
	if first := t.nodes[0].id; id >= first && id-first < uint64(len(t.nodes)) && t.nodes[id-first].id == id {
		return int(id - first), true
	}
	return slices.BinarySearchFunc(t.nodes, id, func(n node, id uint64) int { return cmp.Compare(n.id, id) })
}

// before returns the indices of the nodes that node i waits for.
func (t *trace) before(i int) []uint64 { return t.deps[t.nodes[i].deps:t.nodes[i].end] }
