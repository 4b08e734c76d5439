package host

// Pages are neighbouring pages of an address space.
type Pages struct {
	First uint64 // address of the first
	Count int    // 0: none
}

// PageTable is the states of the pages of an address space, kept beside its
// bytes, and what the operating system does about a page that a program cannot
// have: one that was never touched, that is shared until it is written, that
// lies on storage. The size of a page is its own business.
type PageTable interface {
	// Touch is told that a core is about to read or write n bytes, at least 1,
	// at addr. It returns the first pages among them that the core cannot have
	// as they are, or the zero Pages.
	Touch(addr, n uint64, write bool) Pages
	// Fault gives a thread pages that Touch has returned: the thread works for
	// them and may wait, as for storage. It then touches the bytes again. With
	// t nil, before the program begins, that takes no time. The error says why
	// it cannot have them; the program ends with it.
	Fault(t *Thread, p Pages, write bool) error
}
