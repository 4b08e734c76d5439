package capture

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spinsim/spinsim/fabric"
)

// Places are links or nodes where packets are captured. The zero value is every
// node's link into the network, so that each packet is there once.
type Places struct {
	nodes []int    // both directions of their links
	links []string // by their names
	all   bool
}

// ParsePlaces parses "node=3" (packets that a node sends and receives),
// "link=NAME", and "all" (every link).
func ParsePlaces(list []string) (p Places, err error) {
	for _, text := range list {
		key, value, _ := strings.Cut(text, "=")
		switch {
		case text == "all":
			p.all = true
		case key == "node":
			n, err := strconv.Atoi(value)
			if err != nil || n < 0 {
				return p, fmt.Errorf("%q, expected the number of a node, such as node=3", text)
			}
			p.nodes = append(p.nodes, n)
		case key == "link" && value != "":
			p.links = append(p.links, value)
		default:
			return p, fmt.Errorf("%q, expected node=NUMBER, link=NAME or all", text)
		}
	}
	return p, nil
}

// PlaceError reports a place that the network does not have.
type PlaceError struct{ text string }

// Error names the place.
func (e *PlaceError) Error() string { return e.text }

// list returns the places as ParsePlaces reads them.
func (p *Places) list() map[string]bool {
	all := make(map[string]bool)
	for _, n := range p.nodes {
		all[fmt.Sprintf("node=%d", n)] = true
	}
	for _, l := range p.links {
		all["link="+l] = true
	}
	return all
}

// has reports whether the capture includes packets of a line.
func (p *Places) has(l fabric.Line) bool {
	switch {
	case p.all:
		return true
	case p.nodes == nil && p.links == nil:
		return l.From >= 0
	}
	return slices.Contains(p.nodes, l.From) || slices.Contains(p.nodes, l.To) || slices.Contains(p.links, l.Name)
}
