package npf

import (
	"encoding/binary"
	"fmt"

	"github.com/spinsim/spinsim/handlers/rnr"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/pinning"
	"github.com/spinsim/spinsim/runtime"
)

// courier carries requests for memory of the other process over its own
// connection. Its buffers are pinned.
type courier struct {
	conn *rnr.Conn
	proc *runtime.Proc
	out  runtime.View
	in   runtime.View
}

func newCourier(lib *rnr.Loaded, p *runtime.Proc) (*courier, error) {
	conn, err := lib.Connect(p, "requests")
	if err != nil {
		return nil, err
	}
	c := &courier{conn: conn, proc: p, out: p.Alloc(pinningWords), in: p.Alloc(pinningWords)}
	c.out.Lock()
	c.in.Lock()
	return c, nil
}

// say sends words.
func (c *courier) say(words []uint64) error {
	if 8*len(words) > c.out.Len() {
		return fmt.Errorf("a request of %d words, expected at most %d", len(words), c.out.Len()/8)
	}
	v := c.out.Slice(0, 8*len(words))
	b := v.Write()
	for i, word := range words {
		binary.LittleEndian.PutUint64(b[8*i:], word)
	}
	w, err := c.conn.PostSend(v)
	if err != nil {
		return err
	}
	_, err = w.Wait()
	return err
}

// hears waits for words in a buffer that was posted.
func (c *courier) hears(w *rnr.Work) ([]uint64, error) {
	n, err := w.Wait()
	if err != nil {
		return nil, err
	}
	words, b := make([]uint64, n/8), c.in.Slice(0, n).Read()
	for i := range words {
		words[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return words, nil
}

// Move implements pinning.Courier. The request has three words for each dropped
// region, two for each wanted region, and the direction. The answer is the
// place.
func (c *courier) Move(_ *host.Thread, _ int, m pinning.Move) ([]uint64, error) {
	words := []uint64{uint64(len(m.Drop)), uint64(len(m.Want)), uint64(m.Direction)}
	for _, g := range m.Drop {
		words = append(words, g.Addr, g.Length, g.At)
	}
	for _, r := range m.Want {
		words = append(words, r.Addr, r.Length)
	}
	answer, err := c.conn.PostReceive(c.in)
	if err != nil {
		return nil, err
	}
	if err := c.say(words); err != nil {
		return nil, err
	}
	at, err := c.hears(answer)
	if err != nil {
		return nil, err
	}
	return at[1:], nil
}

// awaits returns when the other process serves.
func (c *courier) awaits() error {
	w, err := c.conn.PostReceive(c.in)
	if err != nil {
		return err
	}
	_, err = w.Wait()
	return err
}

// bye ends serve.
func (c *courier) bye() error { return c.say([]uint64{0}) }

// serve answers the requests of the other process until it says bye.
func (c *courier) serve(p *runtime.Proc, e *pinning.Export) error {
	next, err := c.conn.PostReceive(c.in)
	if err != nil {
		return err
	}
	if err := c.say([]uint64{0}); err != nil { // ready
		return err
	}
	for {
		words, err := c.hears(next)
		if err != nil || len(words) == 1 {
			return err
		}
		m := pinning.Move{Direction: pinning.Direction(words[2])}
		drops, wants := words[0], words[1]
		for words = words[3:]; drops > 0; drops, words = drops-1, words[3:] {
			m.Drop = append(m.Drop, pinning.Grant{Region: pinning.Region{Addr: words[0], Length: words[1]}, At: words[2]})
		}
		for ; wants > 0; wants, words = wants-1, words[2:] {
			m.Want = append(m.Want, pinning.Region{Addr: words[0], Length: words[1]})
		}
		at, err := e.Serve(p.Thread(), 0, m)
		if err != nil {
			return err
		}
		if next, err = c.conn.PostReceive(c.in); err != nil {
			return err
		}
		if err := c.say(append([]uint64{uint64(len(at))}, at...)); err != nil {
			return err
		}
	}
}

// copies returns the copy function of a process's bounce buffer.
func copies(p *runtime.Proc) func(t *host.Thread, to, from, n uint64) error {
	return func(_ *host.Thread, to, from, n uint64) error { return p.CopyAt(to, from, n) }
}
