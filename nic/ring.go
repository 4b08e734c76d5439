package nic

// ring is a first-in first-out queue that allocates only to grow.
type ring[T any] struct {
	n, head int32 // n comes first: most readers find it 0 and need no more
	items   []T
}

func (r *ring[T]) len() int { return int(r.n) }

func (r *ring[T]) push(v T) {
	if len(r.items) == int(r.n) {
		grown := make([]T, max(8, 2*len(r.items)))
		k := copy(grown, r.items[r.head:])
		copy(grown[k:], r.items[:r.head])
		r.items, r.head = grown, 0
	}
	r.items[(r.head+r.n)&int32(len(r.items)-1)] = v
	r.n++
}

// pop removes the oldest item; the ring must not be empty.
func (r *ring[T]) pop() T {
	v := r.items[r.head]
	var zero T
	r.items[r.head] = zero
	r.head = (r.head + 1) & int32(len(r.items)-1)
	r.n--
	return v
}

// each calls f with every item, the oldest first.
func (r *ring[T]) each(f func(v *T)) {
	for i := range r.n {
		f(&r.items[(r.head+i)&int32(len(r.items)-1)])
	}
}

// at is item i, the oldest is 0.
func (r *ring[T]) at(i int) T { return r.items[(r.head+int32(i))&int32(len(r.items)-1)] }

// front is the oldest item; the ring must not be empty.
func (r *ring[T]) front() T { return r.items[r.head] }
