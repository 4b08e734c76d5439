package host

// Pages is a run of adjacent pages of an address space.
type Pages struct {
	First uint64 // address of the first
	Count int    // 0: no pages
}

// PageTable keeps the states of the pages of an address space. It also handles
// pages that a program cannot use as they are: never touched, copy on write, or
// on storage. Each page table chooses its page size.
type PageTable interface {
	// Touch prepares a core's access to n bytes, at least 1, at addr. It returns
	// the first of their pages that the core cannot use as they are, or the zero
	// Pages.
	Touch(addr, n uint64, write bool) Pages
	// Fault provides pages that Touch returned. The thread works for them and may
	// wait, for example for storage. It then touches the bytes again. With t nil,
	// before the program begins, it takes no time. If it returns an error, the
	// program ends with it.
	Fault(t *Thread, p Pages, write bool) error
}
