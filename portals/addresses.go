package portals

// addressBook has the name of the process. On a logical interface it also has
// the names of all ranks.
type addressBook struct {
	self    ID // physical identifier, and rank on logical interfaces
	logical bool
	ranks   []ID
}

func (a *addressBook) setMap(mapping []ID) {
	a.ranks = make([]ID, len(mapping))
	a.self.Rank = RankAny
	for rank, id := range mapping {
		a.ranks[rank] = ID{NID: id.NID, PID: id.PID, Rank: uint32(rank)}
		if id.NID == a.self.NID && id.PID == a.self.PID && a.self.Rank == RankAny {
			a.self.Rank = uint32(rank)
		}
	}
}

// physical translates a name that an initiator gives into a physical one.
func (a *addressBook) physical(id ID) (ID, bool) {
	if a.logical {
		if uint64(id.Rank) >= uint64(len(a.ranks)) {
			return ID{}, false
		}
		return a.ranks[id.Rank], true
	}
	if id.NID == NIDAny || id.PID == PIDAny {
		return ID{}, false
	}
	return PhysID(id.NID, id.PID), true
}
