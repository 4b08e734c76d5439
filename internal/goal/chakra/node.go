package chakra

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// nodeType is the type of a node. The values come from the schema.
type nodeType uint8

const (
	invalid nodeType = iota
	metadata
	memLoad
	memStore
	comp
	send
	recv
	coll
	nodeTypes // their number
)

// Names of the numbers of fields in the schema.
const (
	metaVersion, metaAttr = 1, 2

	nodeID, nodeKind, nodeCtrl, nodeData, nodeDuration, nodeInputs, nodeAttr = 1, 3, 4, 5, 7, 8, 10

	attrName, attrDoc = 1, 2
	// values of attributes
	doubleVal, floatVal, int32Val, int64Val, uint32Val, uint64Val    = 3, 5, 7, 9, 11, 13
	sint32Val, sint64Val, fixed32Val, fixed64Val, sfixed32, sfixed64 = 15, 17, 19, 21, 23, 25
	boolVal, boolList, stringVal                                     = 27, 28, 29
)

// Bounds of a node. Larger numbers are broken ones, and their sums would not
// fit the model's clocks.
const (
	maxBytes  = 1 << 50
	maxMicros = 1 << 50
	maxTag    = 1<<31 - 1 // collectives have the tags above
)

// unset marks a number that a node does not have.
const unset = math.MaxUint64

// node is one node of a trace.
type node struct {
	id       uint64
	micros   uint64
	size     uint64 // bytes of a communication, or unset
	src, dst uint64 // NPUs, or unset
	tag      uint32
	deps     uint32 // where its dependencies begin
	end      uint32 // and end
	group    int32  // index in trace.names, -1: all NPUs
	kind     nodeType
	coll     uint8 // CollectiveCommType
	cpu      bool  // is_cpu_op
	ops      bool  // has num_ops
	outside  bool  // involved_dim excludes the dimension
}

// header is what matters of the first message.
type header struct{ version, schema string }

func (h *header) read(s scanner) error {
	for s.next() {
		switch s.field {
		case metaVersion:
			h.version = string(s.bytes())
		case metaAttr:
			var a attribute
			if a.read(s.inner(), &s); string(a.name) == "schema" {
				h.schema = string(a.text)
			}
		}
	}
	return s.err
}

// pytorch reports whether PyTorch's own schema made the trace. The ctrl_deps of
// such a trace are calls that contain others, not an order.
func (h *header) pytorch() bool {
	return h.version == "" && h.schema != "" && !strings.Contains(h.schema, "chakra")
}

// check refuses versions whose nodes may mean something else.
func (h *header) check(file string) error {
	if h.version == "" || h.version == "0.0.4" || h.version == "1.0" || strings.HasPrefix(h.version, "1.0.") {
		return nil
	}
	return &Error{File: file, Msg: fmt.Sprintf("version %q, expected 0.0.4 or 1.0", h.version)}
}

// attribute is a named value.
type attribute struct {
	name  []byte
	field protowire.Number // of the value, 0: none
	n     uint64
	text  []byte
}

// read reads an attribute in a field of a message. The message gets its
// errors.
func (a *attribute) read(s scanner, of *scanner) {
	for s.next() {
		switch s.field {
		case attrName:
			a.name = s.bytes()
		case attrDoc:
		default:
			a.field, a.n, a.text = s.field, s.n, nil
			if s.kind == protowire.BytesType {
				a.text = s.data
			}
		}
	}
	if s.err != nil {
		of.err = s.err
	}
}

// number returns the value of an attribute that counts something.
func (a *attribute) number(most uint64) (uint64, error) {
	n := a.n
	negative := false
	switch a.field {
	case int32Val, int64Val, sfixed64:
		negative = int64(n) < 0
	case sint32Val, sint64Val:
		negative, n = n&1 != 0, n>>1
	case sfixed32:
		negative = int32(n) < 0
	case uint32Val, uint64Val, fixed32Val, fixed64Val, boolVal:
	case stringVal:
		var err error
		if n, err = strconv.ParseUint(string(a.text), 10, 64); err != nil {
			return 0, fmt.Errorf("%s: %q, expected a number", a.name, a.text)
		}
	default:
		return 0, fmt.Errorf("%s: a value of another type, expected a whole number", a.name)
	}
	if negative || n > most {
		return 0, fmt.Errorf("%s: expected 0 to %d", a.name, most)
	}
	return n, nil
}

// excludes reports whether the list of dimensions leaves out the first one.
func (a *attribute) excludes() bool {
	if a.field != boolList {
		return false
	}
	field, kind, n := protowire.ConsumeTag(a.text)
	if n < 0 || field != 1 {
		return false
	}
	b := a.text[n:]
	if kind == protowire.BytesType {
		if b, n = protowire.ConsumeBytes(b); n < 0 {
			return false
		}
	}
	v, n := protowire.ConsumeVarint(b)
	return n > 0 && v == 0
}

// attribute sets what an attribute says about the node.
func (t *trace) attribute(n *node, a *attribute) (err error) {
	var v uint64
	switch string(a.name) {
	case "is_cpu_op":
		v, err = a.number(1)
		n.cpu = v == 1
	case "comm_type":
		v, err = a.number(math.MaxUint8)
		n.coll = uint8(v)
	case "comm_size":
		n.size, err = a.number(maxBytes)
	case "comm_src":
		n.src, err = a.number(math.MaxInt32)
	case "comm_dst":
		n.dst, err = a.number(math.MaxInt32)
	case "comm_tag":
		v, err = a.number(maxTag)
		n.tag = uint32(v)
	case "num_ops":
		n.ops = true
	case "involved_dim":
		n.outside = a.excludes()
	case "pg_name":
		name := string(a.text)
		if a.field != stringVal {
			v, err = a.number(math.MaxUint64)
			name = strconv.FormatUint(v, 10)
		}
		n.group = t.group(name)
	default:
		t.notes.unused(a.name)
	}
	return err
}

// node reads a node, and appends its dependencies to those of the others.
func (t *trace) node(s scanner) error {
	n := node{size: unset, src: unset, dst: unset, group: -1, deps: uint32(len(t.deps))}
	var kind uint64
	var wrong error
	var values []byte
	for s.next() {
		switch s.field {
		case nodeID:
			n.id = s.number()
		case nodeKind:
			kind = s.number()
		case nodeCtrl:
			if t.header.pytorch() {
				t.notes.ctrl += len(s.numbers(nil))
			} else {
				t.deps = s.numbers(t.deps)
			}
		case nodeData:
			t.deps = s.numbers(t.deps)
		case nodeDuration:
			n.micros = s.number()
		case nodeInputs:
			for in := s.inner(); in.next(); {
				if in.field == 1 {
					values = in.bytes()
				}
			}
		case nodeAttr:
			var a attribute
			a.read(s.inner(), &s)
			if err := t.attribute(&n, &a); wrong == nil {
				wrong = err
			}
		}
	}
	switch {
	case s.err != nil:
		return s.err
	case wrong != nil:
		return t.at(&n, "%w", wrong)
	case kind >= uint64(nodeTypes):
		return t.at(&n, "type %d, expected 0 to %d", kind, nodeTypes-1)
	case n.micros > maxMicros:
		return t.at(&n, "duration_micros: %d, expected at most %d", n.micros, uint64(maxMicros))
	case len(t.nodes) > 0 && t.nodes[len(t.nodes)-1].id == n.id:
		return t.at(&n, "two nodes have this id")
	case len(t.deps) > maxDeps || len(t.nodes) >= maxDeps:
		return t.at(&n, "more than %d nodes or dependencies in a file", maxDeps)
	}
	n.end = uint32(len(t.deps))
	if n.kind = nodeType(kind); n.kind == metadata {
		t.define(values)
	}
	t.nodes = append(room(t.nodes, 1), n)
	return nil
}
