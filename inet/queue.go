package inet

// queue is a queue of bytes. It keeps its memory, so a steady stream allocates
// nothing.
type queue struct {
	b    []byte
	from int
}

func (q *queue) len() int { return len(q.b) - q.from }

func (q *queue) bytes() []byte { return q.b[q.from:] }

func (q *queue) append(b []byte) {
	// the bytes moved are fewer than the bytes removed since the last time
	if len(q.b)+len(b) > cap(q.b) && q.from >= q.len() && q.from > 0 {
		q.b = q.b[:copy(q.b, q.b[q.from:])]
		q.from = 0
	}
	q.b = append(q.b, b...)
}

func (q *queue) drop(n int) {
	if q.from += n; q.from == len(q.b) {
		q.b, q.from = q.b[:0], 0
	}
}

func (q *queue) read(b []byte) int {
	n := copy(b, q.bytes())
	q.drop(n)
	return n
}
