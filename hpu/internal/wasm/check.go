package wasm

// Problems checks the bodies of all functions. It returns the first error of
// each invalid one.
func Problems(m *Module) (wrong []*Error) {
	v := &validator{m: m}
	for i := range m.Codes {
		v.function(i)
		if v.err != nil {
			v.err.Func = len(m.Imports) + i
			wrong = append(wrong, v.err)
			v.err = nil
		}
	}
	return wrong
}
