package scenario

import "github.com/spinsim/spinsim/report"

// tableColumns describes the columns of a table of a result. The name is one of
// tableNames.
func tableColumns(name string) []report.Column {
	switch name {
	case "latency":
		return latencyColumns()
	case "breakdown":
		return breakdownColumns()
	case "stats":
		return statsColumns()
	case "state":
		return stateColumns()
	case "memory":
		return memoryColumns()
	case "events":
		return eventColumns()
	case "log":
		return logColumns()
	}
	return nil
}

func latencyColumns() []report.Column {
	return []report.Column{
		rankColumn,
		{Name: "interval", Kind: report.Text, Help: "Name of the measurement."},
		{Name: "samples", Kind: report.Count, Help: "How often it was measured."},
		{Name: "min", Unit: "ns", Kind: report.Duration, Scale: "latency", Help: "Shortest sample."},
		{Name: "median", Unit: "ns", Kind: report.Duration, Scale: "latency", Help: "Middle sample; of an even number the lower of two."},
		{Name: "mean", Unit: "ns", Kind: report.Duration, Scale: "latency", Help: "Mean of all samples, to the picosecond below."},
		{Name: "max", Unit: "ns", Kind: report.Duration, Scale: "latency", Help: "Longest sample."},
	}
}

func stateColumns() []report.Column {
	return []report.Column{
		rankColumn,
		{Name: "entry", Kind: report.Text, Help: "Entry whose handlers use the memory."},
		{Name: "offset", Kind: report.Count, Help: "Where in the HPU memory, bytes."},
		{Name: "field", Kind: report.Text, Help: "Name of the field."},
		{Name: "type", Kind: report.Text, Help: "Type of the field."},
		{Name: "value", Kind: report.Text, Help: "The value."},
		{Name: "hex", Kind: report.Text, Help: "The bytes, lowest address first."},
	}
}

func memoryColumns() []report.Column {
	return []report.Column{
		rankColumn,
		{Name: "memory", Kind: report.Text, Help: "Entry or buffer."},
		{Name: "offset", Kind: report.Count, Help: "Where in it, bytes."},
		{Name: "hex", Kind: report.Text, Help: "The bytes, lowest address first."},
	}
}

func eventColumns() []report.Column {
	return []report.Column{
		{Name: "time", Unit: "ns", Kind: report.Duration, Help: "When the event was posted, since the beginning of the run."},
		rankColumn,
		{Name: "event", Kind: report.Text, Help: "Type of the event."},
		{Name: "of", Kind: report.Text, Help: "Entry, or step that posted the operation."},
		{Name: "from", Kind: report.Count, Help: "Rank of the initiator, at the target."},
		{Name: "bytes", Kind: report.Size, Help: "Bytes that were moved."},
		{Name: "requested_bytes", Kind: report.Size, Help: "Bytes that were asked for."},
		{Name: "match_bits", Kind: report.Text, Help: "Match bits of the request."},
		{Name: "hdr_data", Kind: report.Text, Help: "64 bits of the initiator."},
		{Name: "result", Kind: report.Text, Help: "OK, or why it failed."},
	}
}

func logColumns() []report.Column {
	return []report.Column{
		{Name: "time", Unit: "ns", Kind: report.Duration, Help: "When the handler logged the line."},
		rankColumn,
		{Name: "module", Kind: report.Text, Help: "Module of the handler."},
		{Name: "line", Kind: report.Text, Help: "What it logged."},
	}
}

func statsColumns() []report.Column {
	columns := []report.Column{rankColumn}
	for _, s := range stats {
		columns = append(columns, report.Column{Name: s.name, Kind: s.kind, Help: s.help})
	}
	columns = append(columns, report.Column{
		Name: "host_cpu", Unit: "ns", Kind: report.Duration,
		Help: "Time of all cores, posting, computing, copying and looking at completions.",
	})
	return columns
}
