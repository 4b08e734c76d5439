package hpu

// Signature gives the external tests the parameters and the result of an
// import, a letter each: i is i32, I is i64.
func (op Op) Signature() (params, result string) { return opTable[op].params, opTable[op].result }
