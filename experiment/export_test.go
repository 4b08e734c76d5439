package experiment

// LeastDivided is how many nodes a simulation on several cores has.
var LeastDivided = &leastDivided

// Divided reports whether a run of the point had several domains.
func (p *Point) Divided() bool { return p.divided != nil && *p.divided }
