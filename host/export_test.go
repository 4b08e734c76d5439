package host

// FrameUsed reports whether the page at a physical address is in use.
func (k *Kernel) FrameUsed(addr uint64) bool {
	f := frame(addr / PageBytes)
	return f == zeroFrame || k.memory.page(f).used
}

// Disk returns the content of a file on storage.
func (f *File) Disk() []byte { return f.disk }
