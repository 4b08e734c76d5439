package smmu

// Forget takes what was found last from the front of the TLB.
func (s *SMMU) Forget() { s.l1.forget() }
