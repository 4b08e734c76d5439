package goal

type Noise struct{}

func (n *Noise) fits(ranks int) error                 { return nil }
func (n *Noise) end(rank uint32, t, work int64) int64 { return t + work }
