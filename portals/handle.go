package portals

import "github.com/spinsim/spinsim/internal/poison"

// Handle names an object (ptl_handle_any_t): 3 bits of kind, 2 bits of
// interface, 27 bits of serial number. The zero Handle names nothing. Serial
// numbers of a kind on an interface repeat only after 2^27 allocations. They
// start at a value that depends on the process. So a stale handle, a handle of
// another kind and a handle of another process are recognised.
type Handle uint32

// Kind is the kind of object a handle names.
type Kind uint8

// Kinds of object. Zero is none.
const (
	KindNone Kind = iota
	KindNI
	KindEQ
	KindCT
	KindMD
	KindLE
	KindME
)

// Handles that name nothing. All are the zero Handle.
const (
	InvalidHandle Handle = 0 // PTL_INVALID_HANDLE
	EQNone        Handle = 0 // PTL_EQ_NONE
	CTNone        Handle = 0 // PTL_CT_NONE
)

const (
	serialBits = 27
	serialMask = 1<<serialBits - 1
)

func makeHandle(k Kind, ni NIKind, serial uint32) Handle {
	return Handle(uint32(k)<<29 | uint32(ni)<<serialBits | serial&serialMask)
}

// Kind returns the kind encoded in the handle, even if the object no longer
// exists.
func (h Handle) Kind() Kind { return Kind(h >> 29) }

// NI returns the interface encoded in the handle.
func (h Handle) NI() NIKind { return NIKind(h>>serialBits) & 3 }

// HandleIsEqual (PtlHandleIsEqual) reports whether both handles name the same
// object, as the C function does with a value other than zero. It only compares
// the handles, as C does: two that name nothing may be equal.
func HandleIsEqual(a, b Handle) bool { return a == b }

// table maps handles of one kind to objects: a direct-mapped table indexed by
// the low bits of the serial number. At most half of it is in use.
type table[T any] struct {
	ids  []tableSlot[T]
	kind Kind
	ni   NIKind
	next uint32
	live int
}

type tableSlot[T any] struct {
	h Handle
	p *T
}

const firstTableSize = 4

func (t *table[T]) init(kind Kind, ni NIKind, salt uint32) {
	t.kind, t.ni, t.next = kind, ni, salt
	t.ids = make([]tableSlot[T], firstTableSize)
}

func (t *table[T]) get(h Handle) *T {
	s := &t.ids[uint32(h)&uint32(len(t.ids)-1)]
	if s.h != h || h == InvalidHandle {
		return nil
	}
	return s.p
}

func (t *table[T]) add(p *T) Handle { return t.addKind(p, t.kind) }

func (t *table[T]) addKind(p *T, kind Kind) Handle {
	if 2*(t.live+1) > len(t.ids) {
		t.grow()
	}
	mask := uint32(len(t.ids) - 1)
	for t.ids[t.next&mask].p != nil {
		t.next++
	}
	h := makeHandle(kind, t.ni, t.next)
	t.ids[t.next&mask] = tableSlot[T]{h, p}
	t.next++
	t.live++
	return h
}

func (t *table[T]) grow() {
	old := t.ids
	t.ids = make([]tableSlot[T], 2*len(old))
	mask := uint32(len(t.ids) - 1)
	for _, s := range old {
		if s.p != nil {
			t.ids[uint32(s.h)&mask] = s
		}
	}
}

func (t *table[T]) remove(h Handle) {
	s := &t.ids[uint32(h)&uint32(len(t.ids)-1)]
	if s.h == h {
		*s = tableSlot[T]{}
		t.live--
	}
}

// Spare has unused operations and deliveries. The interfaces that one core of
// the simulating machine handles share it, so that the next use finds memory in
// the cache. No result depends on it.
type Spare struct {
	ops        pool[Op]
	deliveries deliveryPool
	limits     [2]*Limits // the latest: nearly all interfaces have the same
}

// keep returns limits that equal l and that nobody changes.
func (s *Spare) keep(l *Limits) *Limits {
	for _, known := range s.limits {
		if known != nil && *known == *l {
			return known
		}
	}
	kept := *l
	s.limits[0], s.limits[1] = s.limits[1], &kept
	return &kept
}

// pool recycles objects. It allocates them one by one, because objects of 256
// or 320 bytes then begin at cache lines. Elements of an array need not.
type pool[T any] struct{ free []*T }

func (p *pool[T]) get() *T {
	n := len(p.free)
	if n == 0 {
		return new(T)
	}
	x := p.free[n-1]
	p.free = p.free[:n-1]
	return x
}

func (p *pool[T]) put(x *T) {
	if poison.On { // it is marked, and forgotten
		return
	}
	p.free = append(p.free, x)
}
