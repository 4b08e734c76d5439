package chakra

import (
	"bytes"

	"google.golang.org/protobuf/encoding/protowire"
)

// encoder writes traces.
type encoder struct{ bytes.Buffer }

func (e *encoder) message(m []byte) *encoder {
	e.Write(protowire.AppendVarint(nil, uint64(len(m))))
	e.Write(m)
	return e
}

// newTrace begins a trace of a version.
func newTrace(version string) *encoder { return new(encoder).message(text(nil, metaVersion, version)) }

func number(m []byte, field protowire.Number, n uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(m, field, protowire.VarintType), n)
}

func text[T string | []byte](m []byte, field protowire.Number, s T) []byte {
	return append(protowire.AppendVarint(protowire.AppendTag(m, field, protowire.BytesType), uint64(len(s))), s...)
}

// with adds an attribute to a node. The names of those of ASTRA-sim's traces
// have values of these types.
func with(m []byte, name string, value any) []byte {
	a := text(nil, attrName, name)
	switch v := value.(type) {
	case int:
		a = number(a, int64Val, uint64(v))
	case bool:
		a = number(a, boolVal, protowire.EncodeBool(v))
	case string:
		a = text(a, stringVal, v)
	case []byte:
		a = append(a, v...)
	}
	return text(m, nodeAttr, a)
}

// id begins a node of a type that waits for others.
func id(n int, kind nodeType, deps ...int) []byte {
	m := number(number(nil, nodeID, uint64(n)), nodeKind, uint64(kind))
	for _, d := range deps {
		m = number(m, nodeData, uint64(d))
	}
	return m
}

func compNode(n, micros int, deps ...int) []byte {
	return number(id(n, comp, deps...), nodeDuration, uint64(micros))
}

func sendNode(n, size, to, tag int, deps ...int) []byte {
	return with(with(with(id(n, send, deps...), "comm_size", size), "comm_dst", to), "comm_tag", tag)
}

func recvNode(n, size, from, tag int, deps ...int) []byte {
	return with(with(with(id(n, recv, deps...), "comm_size", size), "comm_src", from), "comm_tag", tag)
}

func collNode(n int, kind uint8, size int, deps ...int) []byte {
	return with(with(with(id(n, coll, deps...), "is_cpu_op", false), "comm_type", int(kind)), "comm_size", size)
}

// Numbers of collectives in the schema.
const (
	allReduce, allGather, allToAll, reduceScatter = 0, 2, 6, 7
)

// trace returns a trace of these nodes.
func traceOf(nodes ...[]byte) []byte {
	e := newTrace("0.0.4")
	for _, n := range nodes {
		e.message(n)
	}
	return e.Bytes()
}
