package raid5

// Hold takes the first row, and does not give it back: as a client that is gone.
func (c *Client) Hold() error { return c.swapUntil(0, 0, uint64(c.Slot)+1) }

// Lose sets what a server has to zeros.
func (a *Array) Lose(server int) {
	for _, part := range a.servers[server].parts {
		clear(part.Write())
	}
}

// StoredContents is Contents of the storage devices.
func (a *Array) StoredContents(offset, length int64) []byte {
	all := make([]byte, length)
	for x := offset; x < offset+length; {
		server, at := a.o.Place(x)
		n := a.o.Unit - at%a.o.Unit
		x += int64(copy(all[x-offset:], a.Stored(server)[at:at+n]))
	}
	return all
}
