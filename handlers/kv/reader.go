//go:build !tinygo

package kv

import (
	"encoding/binary"
	"fmt"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
)

// reader gets keys by RDMA reads of the servers' memory, as Pilaf (Mitchell et
// al., ATC'13) and FaRM (Dragojević et al., NSDI'14) do. It reads the bucket's
// link, then the block of the item, then along the chain. The host changes a
// stripe in one moment and counts the change in the directory, so:
//   - An item with a correct checksum that the bucket's link names was the
//     key's item when the link was read.
//   - An item found behind another one, or a missing item, is correct if the
//     stripe has not changed during the walk.
//
// Otherwise the walk begins again.
type reader struct {
	c       *Client
	md, eq  portals.Handle
	memory  runtime.View
	servers [][]entry // the directories, as far as they were read
}

// entry is an entry of a directory.
type entry struct{ table, changes uint64 }

func newReader(u *handlers.Setup, c *Client) *reader {
	r := &reader{c: c, memory: u.Locked(64 << ClassOf(uint64(RequestSize+c.o.MaxKey+c.o.MaxValue))), eq: u.Queue(8, "reads of the key-value store")}
	r.md = u.Bind(r.memory, portals.MD{EQ: r.eq})
	for range c.servers {
		r.servers = append(r.servers, make([]entry, c.o.Stripes))
	}
	return r
}

// read reads memory of a server. The bytes are valid until the program next waits.
func (r *reader) read(server int, at uint64, n int) ([]byte, error) {
	c := r.c
	if err := c.ni.Get(portals.Get{MD: r.md, Length: uint64(n), Target: c.id(server), PT: uint32(c.o.PT + memoryEntry), MatchBits: requestBits, RemoteOffset: at}); err != nil {
		return nil, err
	}
	ev, err := c.ni.EQWait(r.eq)
	if err != nil {
		return nil, err
	}
	if ev.Type != portals.EventReply || ev.Fail != portals.NIOK || ev.MLength != uint64(n) {
		return nil, fmt.Errorf("kv: a read of %d B at %#x of server %d ended with %v, %v and %d B", n, at, server, ev.Type, ev.Fail, ev.MLength)
	}
	return r.memory.Slice(0, n).Read(), nil
}

func (r *reader) word(server int, at uint64) (uint64, error) {
	b, err := r.read(server, at, 8)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b), nil
}

// look reads an entry of a directory, and reports whether it has changed.
func (r *reader) look(server int, stripe uint64) (changed bool, err error) {
	b, err := r.read(server, directory+stripe*directoryEntry, directoryEntry)
	if err != nil {
		return false, err
	}
	now := entry{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])}
	was := r.servers[server][stripe]
	r.servers[server][stripe] = now
	return now != was, nil
}

// get is [Client.Get].
func (r *reader) get(key []byte) (value []byte, version uint64, err error) {
	if err := r.c.keyFits(key); err != nil {
		return nil, 0, err
	}
	hash := Hash(key)
	server, stripe := r.c.server(hash), hash&uint64(r.c.o.Stripes-1)
	if r.servers[server][stripe].table == 0 {
		if _, err := r.look(server, stripe); err != nil {
			return nil, 0, err
		}
	}
	for range tries {
		i, how, err := r.walk(server, r.servers[server][stripe].table, key, hash)
		changed := how == anew
		// the directory is read into the place of the item's header
		if err == nil && how != certain {
			var other bool
			other, err = r.look(server, stripe)
			changed = changed || other
		}
		switch at := RequestSize + int(i.Key); {
		case err != nil:
			return nil, 0, err
		case changed:
			r.c.again++
		case i.Version == 0:
			return nil, 0, ErrNotFound
		case int(i.Value) > r.c.o.MaxValue:
			return nil, 0, r.c.errorOf(&Answer{Status: TooLong, Value: i.Value})
		default:
			return r.memory.Slice(at, at+int(i.Value)).Read(), i.Version, nil
		}
	}
	return nil, 0, ErrBusy
}

// Degrees of certainty of a walk's result.
const (
	certain   = iota
	unchanged // if the stripe has not changed
	anew      // the walk must begin again
)

// walk reads a bucket and follows its links. If there is no item its version is
// 0.
func (r *reader) walk(server int, table uint64, key []byte, hash uint64) (i Item, how int, err error) {
	link, err := r.word(server, Bucket(table, hash))
	if err != nil || link == moved {
		return i, anew, err
	}
	for how = certain; link != 0; how = unchanged {
		place, n := Place(link), 64<<min(Class(link), MaxClass)
		if !Alike(link, hash) {
			n = 8
		}
		if n > r.memory.Len() || place+uint64(n) > uint64(r.c.o.Memory) {
			return Item{}, anew, nil // no link: the block that it was read from has become something else
		}
		b, err := r.read(server, place, n)
		if err != nil {
			return i, anew, err
		}
		if n == 8 {
			link = binary.LittleEndian.Uint64(b)
			continue
		}
		if err := decode(b, &i); err != nil {
			return i, anew, err
		}
		all := RequestSize + uint64(i.Key) + uint64(i.Value)
		if i.Hash == hash && int(i.Key) == len(key) && all <= uint64(n) && Same(b[RequestSize:RequestSize+i.Key], key) {
			good := i.Version != 0 && checksum(i.Version, b[RequestSize:all]) == i.Check
			r.c.p.Stream(int64(all), 0)
			if !good {
				return Item{}, anew, nil
			}
			return i, how, nil
		}
		link = i.Next
	}
	return Item{}, unchanged, nil
}
