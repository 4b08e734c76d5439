package manifest

import "fmt"

// Memories is the layout of the memories of clusters and messages in HPU memory
// (docs/abi.md, Memories of clusters and messages), bytes.
type Memories struct {
	ClusterAt, Cluster int64 // offset of the first, and size of each; the others follow
	MessageAt, Message int64 // likewise
	Messages           int64 // number of messages with memory
	End                int64 // of all needed HPU memory
}

const (
	memoryAlign = 16
	maxMemory   = 1 << 32 // bytes; the limits of devices are lower
	maxMessages = 1 << 16
)

// Memories lays out the memories after the given number of bytes of HPU memory.
func (n *Needs) Memories(d *Device, behind int64) (m Memories, err error) {
	for _, x := range []struct {
		what string
		e    Expr
		into *int64
	}{{"scratchpad", n.Scratchpad, &m.Cluster}, {"message_memory", n.MessageMemory, &m.Message}, {"messages", n.Messages, &m.Messages}} {
		if *x.into, err = x.e.Between(d, 0, maxMemory); err != nil {
			return m, fmt.Errorf("%s: %w", x.what, err)
		}
	}
	if !n.Messages.IsSet() {
		m.Messages = d.HPUs * d.Contexts
	}
	up := func(n int64) int64 { return (n + memoryAlign - 1) / memoryAlign * memoryAlign }
	m.Cluster, m.Message, m.End = up(m.Cluster), up(m.Message), behind
	if m.Cluster > 0 {
		m.ClusterAt = up(m.End)
		m.End = m.ClusterAt + d.Clusters*m.Cluster
	}
	if m.Message == 0 {
		m.Messages = 0
		return m, nil
	}
	if m.Messages < 1 || m.Messages > maxMessages {
		return m, fmt.Errorf("messages: %d, expected 1 to %d", m.Messages, maxMessages)
	}
	m.MessageAt = up(m.End)
	m.End = m.MessageAt + m.Messages*m.Message
	return m, nil
}
