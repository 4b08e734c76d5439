package smmu

// Forget removes the entries in front of the TLB.
func (s *SMMU) Forget() { s.l1.forget() }
