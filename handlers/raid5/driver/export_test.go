package driver

// Lose sets what a server has to zeros.
func (a *Array) Lose(server int) {
	for _, part := range a.servers[server].parts {
		clear(part.Write())
	}
}
