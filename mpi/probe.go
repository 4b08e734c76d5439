package mpi

// Iprobe reports whether a message has come that a receive would take now, and
// returns its status. source and tag may be wildcards. Iprobe first handles
// everything that has arrived. If there is no message, at least one look at
// memory (host.poll) has passed, so a program may call Iprobe in a loop.
func (c *Comm) Iprobe(source int, tag uint32) (Status, bool, error) {
	if err := c.message("probe", 0, source, AnySource, tag, true); err != nil {
		return Status{}, false, err
	}
	if source == ProcNull {
		return Status{Source: ProcNull, Tag: AnyTag}, true, nil
	}
	if err := c.r.arrived(); err != nil {
		return Status{}, false, err
	}
	s, found, err := c.probed(source, tag)
	if err == nil && !found {
		c.r.looked()
	}
	return s, found, err
}

func (c *Comm) probed(source int, tag uint32) (Status, bool, error) {
	s, found, err := c.r.transport.probe(envelope{source: c.Translate(source), tag: tag, context: c.point()})
	s.Source = c.rankOf(s.Source)
	return s, found, err
}

// Probe waits for a message that a receive would take, and returns its status.
// source and tag may be wildcards.
func (c *Comm) Probe(source int, tag uint32) (Status, error) {
	s, found, err := c.Iprobe(source, tag)
	c.r.call = "Probe"
	for err == nil && !found {
		if err = c.r.transport.awaitProbe(); err == nil {
			err = c.r.proceed()
		}
		if err == nil {
			s, found, err = c.probed(source, tag)
		}
	}
	c.r.call = ""
	return s, err
}
