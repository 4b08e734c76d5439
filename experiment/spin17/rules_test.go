package spin17

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/profile"
)

func rule(t *testing.T, v experiment.Values) *experiment.Result {
	device, err := profile.Load("spin-int")
	require.NoError(t, err)
	p, err := rulesExperiment.At(device, v)
	require.NoError(t, err)
	r, err := rulesExperiment.Measure(context.Background(), p)
	require.NoError(t, err)
	return r
}

// Each action runs the handlers that it says, and leaves the bytes that it says.
func TestRules(t *testing.T) {
	for action, want := range map[string][]any{
		actionDeposit: {2, 6, 2, 10_000 - 16},
		actionDrop:    {2, 0, 0, 0},
		actionProceed: {2, 0, 0, 10_000},
		actionDevice:  {2, 6, 2, 0},
		actionHost:    {2, 6, 2, 0},
		actionAdd:     {0, 6, 2, 0},
	} {
		r := rule(t, experiment.Values{"action": action, "messages": 2, "size": 10_000})
		require.Equal(t, want, []any{r.Values["headers"], r.Values["payloads"], r.Values["completions"], r.Values["deposited"]}, action)
		require.Zero(t, r.Values["disorder"], action)
		require.Zero(t, r.Values["killed"], action)
		require.Equal(t, r.Values["completions"], r.Values["before_event"], action)
	}
	endless := rule(t, experiment.Values{"action": actionEndless, "size": 10_000})
	require.Equal(t, []any{3, 3}, []any{endless.Values["payloads"], endless.Values["killed"]})
	twice := rule(t, experiment.Values{"action": actionHost, "size": 10_000, "puts": 2})
	require.Zero(t, twice.Values["refused"])
	large := rule(t, experiment.Values{"action": actionDevice, "size": 10_000, "length": 4097})
	require.Equal(t, 3, large.Values["refused"])
}

// A device with handlers in the wrong order would be found.
func TestRuleWatchFindsDisorder(t *testing.T) {
	began := func(number int64, kind string) nic.HandlerStep {
		return nic.HandlerStep{What: nic.StepBegan, Number: number, Handler: kind}
	}
	ended := func(number int64, kind string, hpu int) nic.HandlerStep {
		return nic.HandlerStep{What: nic.StepEnded, Number: number, Handler: kind, HPU: hpu}
	}
	for name, k := range map[string]struct {
		steps           []nic.HandlerStep
		disorder, moved int
	}{
		"right":                        {[]nic.HandlerStep{began(1, "header"), ended(1, "header", 0), began(2, "payload"), ended(2, "payload", 0), began(3, "completion"), ended(3, "completion", 0)}, 0, 0},
		"payload before header's end":  {[]nic.HandlerStep{began(1, "header"), began(2, "payload")}, 1, 0},
		"completion before payload's":  {[]nic.HandlerStep{began(1, "header"), ended(1, "header", 0), began(2, "payload"), began(3, "completion")}, 1, 0},
		"payload after completion":     {[]nic.HandlerStep{began(1, "header"), ended(1, "header", 0), began(3, "completion"), began(2, "payload")}, 1, 0},
		"two header handlers":          {[]nic.HandlerStep{began(1, "header"), began(2, "header")}, 1, 0},
		"ended on another HPU":         {[]nic.HandlerStep{began(1, "header"), ended(1, "header", 3)}, 0, 1},
		"completion without a payload": {[]nic.HandlerStep{began(1, "header"), ended(1, "header", 0), began(3, "completion")}, 0, 0},
	} {
		var w ruleWatch
		for i := range k.steps {
			w.step(&k.steps[i])
		}
		v := w.values(0)
		require.Equal(t, []any{k.disorder, k.moved}, []any{v["disorder"], v["moved"]}, name)
	}
	w := ruleWatch{}
	for _, s := range []nic.HandlerStep{
		began(1, "header"), ended(1, "header", 0), began(2, "payload"),
		{What: nic.StepActed, Number: 2, Op: hpu.OpPutFromDevice, Suspended: true, At: 100},
		{What: nic.StepAnswered, Number: 2, Op: hpu.OpPutFromDevice, At: 350},
		{What: nic.StepActed, Number: 2, Op: hpu.OpPutFromHost, Result: hpu.NoSpace},
	} {
		w.step(&s)
	}
	v := w.values(0)
	require.EqualValues(t, 250, v["blocked"])
	require.Equal(t, 1, v["refused"])
}
