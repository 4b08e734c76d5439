package host

// FrameUsed reports whether the page at a physical address is somebody's.
func (k *Kernel) FrameUsed(addr uint64) bool {
	f := frame(addr / PageBytes)
	return f == zeroFrame || k.memory.page(f).used
}

// Disk is what storage has of a file.
func (f *File) Disk() []byte { return f.disk }
