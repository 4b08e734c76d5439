package host

// shares are the parts of lines of streams in a bus (start-time fair queueing by bytes).
type shares struct {
	weights, virtual []float64 // by Access.Line
	now              float64
}

// Share lets the streams of a bus take turns piece by piece: lines have the bus by
// their weights, and streams of a line come one after the other. So a long one delays
// another line by a piece. Access.Line is an index of weights. Call it before the first
// access.
func Share(b *Bus, weights []float64) {
	b.extend().shares = &shares{weights: weights, virtual: make([]float64, len(weights))}
}

func (s *shares) of(a *Access) float64 { return max(s.virtual[a.Line], s.now) }

// take takes out the stream that has the next turn: the oldest of the line with the
// least virtual time.
func (s *shares) take(list *streams) *Access {
	var best, before *Access
	for prev, a := (*Access)(nil), list.first; a != nil; prev, a = a, a.next {
		if best == nil || s.of(a) < s.of(best) {
			best, before = a, prev
		}
	}
	if before == nil {
		list.first = best.next
	} else {
		before.next = best.next
	}
	if list.last == best {
		list.last = before
	}
	return best
}

// passes notes that n bytes of a stream pass the bus.
func (s *shares) passes(a *Access, n int64) {
	s.now = s.of(a)
	s.virtual[a.Line] = s.now + float64(max(1, n))/s.weights[a.Line]
}
