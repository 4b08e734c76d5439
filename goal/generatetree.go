package goal

import "math/bits"

// The trees number the ranks from the root: v = (rank-root) mod ranks.

// binomialParent returns the parent of v > 0: v without its highest bit. The
// children of v are v with one higher bit.
func binomialParent(v int) int { return v &^ (1 << (bits.Len(uint(v)) - 1)) }

// eachBinomialChild calls f for the children of v below n, nearest first.
func eachBinomialChild(v, n int, f func(child int)) {
	for bit := 1 << bits.Len(uint(v)); v+bit < n; bit *= 2 {
		f(v + bit)
	}
}

func binomialBroadcast(p *GenParams) emitter {
	return broadcast(p, binomialParent, func(v int, f func(int)) { eachBinomialChild(v, p.Ranks, f) })
}

func binaryBroadcast(p *GenParams) emitter {
	return broadcast(p, func(v int) int { return (v - 1) / 2 }, func(v int, f func(int)) {
		for child := 2*v + 1; child <= 2*v+2 && child < p.Ranks; child++ {
			f(child)
		}
	})
}

// broadcast sends to all children when the parent's message is there.
func broadcast(p *GenParams, parent func(v int) int, children func(v int, f func(child int))) emitter {
	return func(b *Builder, r int) {
		v, got := p.at(r, -p.Root), -1
		if v > 0 {
			got = b.Recv(p.Size, p.at(p.Root, parent(v)), 0)
		}
		children(v, func(child int) {
			send := b.Send(p.Size, p.at(p.Root, child), 0)
			if got >= 0 {
				b.Requires(send, got)
			}
		})
	}
}

func binomialReduce(p *GenParams) emitter {
	return func(b *Builder, r int) {
		v := p.at(r, -p.Root)
		var got []int
		eachBinomialChild(v, p.Ranks, func(child int) {
			got = append(got, p.calc(b, b.Recv(p.Size, p.at(p.Root, child), 0)))
		})
		if v == 0 {
			return
		}
		send := b.Send(p.Size, p.at(p.Root, binomialParent(v)), 0)
		for _, y := range got {
			b.Requires(send, y)
		}
	}
}

func gather(p *GenParams) emitter {
	return func(b *Builder, r int) {
		if r != p.Root {
			b.Send(p.Size, p.Root, 0)
			return
		}
		for d := 1; d < p.Ranks; d++ {
			b.Recv(p.Size, p.at(r, d), 0)
		}
	}
}

func scatter(p *GenParams) emitter {
	return func(b *Builder, r int) {
		if r != p.Root {
			b.Recv(p.Size, p.Root, 0)
			return
		}
		for d := 1; d < p.Ranks; d++ {
			b.Send(p.Size, p.at(r, d), 0)
		}
	}
}

// linearBarrier gathers at the root, in a computation of no length that all
// releases require.
func linearBarrier(p *GenParams) emitter {
	return func(b *Builder, r int) {
		if r != p.Root {
			b.Send(p.Size, p.Root, 0)
			b.Recv(p.Size, p.Root, 0)
			return
		}
		all := b.Calc(0)
		for d := 1; d < p.Ranks; d++ {
			b.Requires(all, b.Recv(p.Size, p.at(r, d), 0))
			b.Requires(b.Send(p.Size, p.at(r, d), 0), all)
		}
	}
}

// pipelinedRing passes segments from the root around the ring, up to the rank
// before the root.
func pipelinedRing(p *GenParams) emitter {
	return func(b *Builder, r int) {
		v := p.at(r, -p.Root)
		tag := uint32(0) // number of the segment: a short last one may overtake a rendezvous
		for left := p.Size; ; left -= p.Segment {
			size, got := min(left, p.Segment), -1
			if v > 0 {
				got = b.Recv(size, p.at(r, -1), tag)
			}
			if v < p.Ranks-1 {
				send := b.Send(size, p.at(r, 1), tag)
				if got >= 0 {
					b.Requires(send, got)
				}
			}
			if left <= p.Segment || b.err != nil {
				return
			}
			tag++
		}
	}
}

// doubleRing passes the message in both directions until it is back at the
// root. The tag is the direction, because in a ring of 2 both neighbours are
// the same rank.
func doubleRing(p *GenParams) emitter {
	return func(b *Builder, r int) {
		if p.Ranks == 1 {
			return
		}
		for tag, d := range []int{1, -1} {
			got := b.Recv(p.Size, p.at(r, -d), uint32(tag))
			send := b.Send(p.Size, p.at(r, d), uint32(tag))
			if r != p.Root {
				b.Requires(send, got)
			}
		}
	}
}

// halo exchanges with the neighbours in a grid without wrap-around. The grid is
// as square as the number of ranks allows. The first dimension varies fastest.
func halo(dims int) func(p *GenParams) emitter {
	return func(p *GenParams) emitter {
		size := gridSize(p.Ranks, dims)
		return func(b *Builder, r int) {
			var peers []int
			rest, stride := r, 1
			for _, n := range size {
				if rest%n > 0 {
					peers = append(peers, r-stride)
				}
				if rest%n < n-1 {
					peers = append(peers, r+stride)
				}
				rest /= n
				stride *= n
			}
			before := []int(nil)
			for range p.Iterations {
				if b.err != nil {
					return
				}
				var now []int
				for _, peer := range peers {
					send := b.Send(p.Size, peer, 0)
					for _, y := range before {
						b.Requires(send, y)
					}
				}
				for _, peer := range peers {
					recv := b.Recv(p.Size, peer, 0)
					for _, y := range before {
						b.Requires(recv, y)
					}
					now = append(now, recv)
				}
				if p.CalcNS > 0 {
					c := b.Calc(p.CalcNS)
					for _, y := range append(now, before...) {
						b.Requires(c, y)
					}
					now = append(now[:0], c)
				}
				before = now
			}
		}
	}
}

// gridSize splits n into factors, largest first. The smallest ones are as large
// as possible.
func gridSize(n, dims int) []int {
	size := make([]int, dims)
	for d := dims; d > 0; d-- {
		f := 1
		for i := 1; power(i, d) <= n; i++ {
			if n%i == 0 {
				f = i
			}
		}
		if d == 1 {
			f = n
		}
		size[d-1] = f
		n /= f
	}
	return size
}

func power(x, k int) int {
	v := 1
	for range k {
		v *= x
	}
	return v
}
