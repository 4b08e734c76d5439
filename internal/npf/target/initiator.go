package target

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/handlers/rnr"
	"github.com/spinsim/spinsim/runtime"
)

// ErrRefused is the answer to a request for bytes outside the disk, or for a
// part of a page.
var ErrRefused = errors.New("target: the request was refused")

// Initiator is the requesting side of a session.
type Initiator struct {
	target   *Target
	conn     *rnr.Conn
	data     runtime.View // one buffer for each request under way
	requests runtime.View
	answers  runtime.View
	receives []*rnr.Work
	sends    []*rnr.Work
	asked    []Answer // by place
	posted   int
	answered int
}

// Answer is the answer to a request. Its Data is valid until Depth further
// requests have been posted.
type Answer struct {
	At   int // of the disk
	Data runtime.View
}

// Connect makes p the only initiator of a session, 0 to Options.Sessions - 1.
// Its memory is present from the beginning. Call it before p first waits.
func (t *Target) Connect(p *runtime.Proc, session int) (*Initiator, error) {
	if session < 0 || session >= t.o.Sessions {
		return nil, fmt.Errorf("target: session %d, expected 0 to %d", session, t.o.Sessions-1)
	}
	conn, err := t.lib.Connect(p, t.name(session))
	if err != nil {
		return nil, err
	}
	depth := t.o.Depth
	i := &Initiator{
		target: t, conn: conn, data: p.Alloc(depth * t.o.Buffer), requests: p.Alloc(depth * requestBytes), answers: p.Alloc(depth * answerBytes),
		receives: make([]*rnr.Work, depth), sends: make([]*rnr.Work, depth), asked: make([]Answer, depth),
	}
	i.data.Raw()
	i.requests.Lock()
	i.answers.Lock()
	return i, nil
}

// Full reports whether the most allowed requests are under way.
func (i *Initiator) Full() bool { return i.posted-i.answered == i.target.o.Depth }

// Idle reports whether no request is under way.
func (i *Initiator) Idle() bool { return i.posted == i.answered }

// Post requests n bytes of the disk from at on.
func (i *Initiator) Post(at, n int) (err error) {
	depth := i.target.o.Depth
	if i.Full() {
		return fmt.Errorf("target: %d requests are under way, expected fewer than that", depth)
	}
	place := i.posted % depth
	buffer := i.data.Slice(place*i.target.o.Buffer, place*i.target.o.Buffer+min(max(n, 0), i.target.o.Buffer))
	if i.receives[place], err = i.conn.PostReceive(i.answers.Slice(place*answerBytes, (place+1)*answerBytes)); err != nil {
		return err
	}
	request := i.requests.Slice(place*requestBytes, (place+1)*requestBytes)
	b := request.Write()
	for k, v := range []uint64{uint64(at), uint64(n), buffer.Addr(), uint64(i.posted)} {
		binary.LittleEndian.PutUint64(b[8*k:], v)
	}
	if i.sends[place], err = i.conn.PostSend(request); err != nil {
		return err
	}
	i.asked[place] = Answer{at, buffer}
	i.posted++
	return nil
}

// Next waits for the answer to the oldest request.
func (i *Initiator) Next() (Answer, error) {
	place := i.answered % i.target.o.Depth
	if i.Idle() {
		return Answer{}, errors.New("target: no request is under way")
	}
	if _, err := i.receives[place].Wait(); err != nil {
		return Answer{}, err
	}
	if _, err := i.sends[place].Wait(); err != nil {
		return Answer{}, err
	}
	b := i.answers.Slice(place*answerBytes, (place+1)*answerBytes).Read()
	number, status := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	if number != uint64(i.answered) {
		return Answer{}, fmt.Errorf("target: an answer to request %d, expected %d", number, i.answered)
	}
	i.answered++
	if status != statusGood {
		return Answer{}, ErrRefused
	}
	return i.asked[place], nil
}
