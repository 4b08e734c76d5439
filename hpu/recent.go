package hpu

import (
	"crypto/sha256"
	"slices"
	"sync"
)

// recent are the modules that were loaded last: a sweep loads the same library
// for the same device again at each of its points.
var recent recentModules

// recents is how many modules are kept: those of points that run side by side.
const recents = 4

// moduleKey is what the result of Load depends on.
type moduleKey struct {
	device string // with the name
	binary [sha256.Size]byte
}

// recentModules are modules by key, the newest last.
type recentModules struct {
	mutex sync.Mutex
	keys  []moduleKey
	list  []*Module
}

// find returns a module. nil: it is not kept.
func (r *recentModules) find(key moduleKey) *Module {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if i := slices.Index(r.keys, key); i >= 0 {
		return r.list[i]
	}
	return nil
}

// add keeps a module in place of the oldest.
func (r *recentModules) add(key moduleKey, m *Module) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	first := max(0, len(r.keys)+1-recents)
	r.keys, r.list = append(slices.Clone(r.keys[first:]), key), append(slices.Clone(r.list[first:]), m)
}
