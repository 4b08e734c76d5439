package goal

import "errors"

func (m *Simulator) unfinished() error { return errors.New("unfinished") }
