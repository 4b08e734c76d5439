package experiment

// builtin is a registered experiment, which tests of the kit run: the external
// tests of this folder register them.
func builtin(name string) *Experiment {
	e, err := Find(name)
	if err != nil {
		panic("experiment: " + err.Error())
	}
	return e
}
