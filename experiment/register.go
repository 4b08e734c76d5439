package experiment

func init() { Register(spin17Publication, partPublication, exanestPublication, npfPublication) }
