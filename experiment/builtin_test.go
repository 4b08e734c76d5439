package experiment

// builtin returns a registered experiment for tests of the kit. The external
// tests of this folder register the experiments.
func builtin(name string) *Experiment {
	e, err := Find(name)
	if err != nil {
		panic("experiment: " + err.Error())
	}
	return e
}
