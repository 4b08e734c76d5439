package mpitrace

import (
	"cmp"
	"slices"
	"strings"
)

// basics are the datatypes that dumpi numbers, with their sizes on machines of 64
// bits.
var basics = []struct {
	name string
	size uint64
}{
	{"MPI_DATATYPE_ERROR", 0},
	{"MPI_DATATYPE_NULL", 0},
	{"MPI_CHAR", 1},
	{"MPI_SIGNED_CHAR", 1},
	{"MPI_UNSIGNED_CHAR", 1},
	{"MPI_BYTE", 1},
	{"MPI_WCHAR", 4},
	{"MPI_SHORT", 2},
	{"MPI_UNSIGNED_SHORT", 2},
	{"MPI_INT", 4},
	{"MPI_UNSIGNED", 4},
	{"MPI_LONG", 8},
	{"MPI_UNSIGNED_LONG", 8},
	{"MPI_FLOAT", 4},
	{"MPI_DOUBLE", 8},
	{"MPI_LONG_DOUBLE", 16},
	{"MPI_LONG_LONG_INT", 8},
	{"MPI_UNSIGNED_LONG_LONG", 8},
	{"MPI_LONG_LONG", 8},
	{"MPI_PACKED", 1},
	{"MPI_LB", 0},
	{"MPI_UB", 0},
	{"MPI_FLOAT_INT", 8},
	{"MPI_DOUBLE_INT", 12},
	{"MPI_LONG_INT", 12},
	{"MPI_SHORT_INT", 6},
	{"MPI_2INT", 8},
	{"MPI_LONG_DOUBLE_INT", 20},
}

// types are the sizes of a rank's datatypes.
type types struct {
	size map[int]uint64 // of those that calls made, or asked for
	used []bool         // of basics
	told map[int]ending // at the end of the file
	late []late
}

// ending is a size at the end of the file.
type ending struct {
	size uint64
	line int
}

// late is a size that only the end of the file may tell.
type late struct {
	call int
	line int
	id   int
	grow func(c *call, size uint64) bool
}

func newTypes() types {
	return types{size: make(map[int]uint64), used: make([]bool, len(basics)), told: make(map[int]ending)}
}

// of returns the size of a datatype.
func (t *types) of(id int) (size uint64, known bool) {
	if id > 0 && id < len(basics) {
		t.used[id] = true
		return basics[id].size, true
	}
	size, known = t.size[id]
	return size, known
}

// datatype reads the number of a datatype.
func (d *dumpi) datatype(name string) int {
	a, id := d.find(name), d.int(name)
	_, meaning, is := strings.Cut(a.value, " (")
	if id > 0 && id < len(basics) && is && meaning != basics[id].name+")" {
		d.fail(a.line, "%s: datatype %s, expected %d to be %s", d.name, a.value, id, basics[id].name)
	}
	return id
}

// times multiplies; false: the product is too large.
func times(p *uint64, n uint64) bool {
	if n != 0 && *p > maxBytes/n {
		*p = maxBytes
		return false
	}
	*p *= n
	return true
}

// What of a call has a datatype.
func outBytes(c *call, size uint64) bool  { return times(&c.out.bytes, size) }
func inBytes(c *call, size uint64) bool   { return times(&c.in.bytes, size) }
func partBytes(c *call, size uint64) bool { return times(&c.part.bytes, size) }
func counts(c *call, size uint64) bool    { return all(c.part.counts, size) }
func back(c *call, size uint64) bool      { return all(c.part.back, size) }

func all(list []uint64, size uint64) bool {
	fits := true
	for i := range list {
		fits = times(&list[i], size) && fits
	}
	return fits
}

// scale turns counts of a call into bytes.
func (d *dumpi) scale(c *call, datatype string, grow func(c *call, size uint64) bool) {
	id, line := d.datatype(datatype), d.find(datatype).line
	if size, known := d.types.of(id); known {
		d.fits(line, grow(c, size))
	} else {
		d.types.late = append(d.types.late, late{len(d.calls), line, id, grow})
	}
}

func (d *dumpi) fits(line int, does bool) {
	if !does {
		d.fail(line, "expected at most %d bytes", int64(maxBytes))
	}
}

// isLate tells if a call has a size that is not known.
func (t *types) isLate(at int) bool {
	_, is := slices.BinarySearchFunc(t.late, at, func(l late, at int) int { return cmp.Compare(l.call, at) })
	return is
}

// sizes finds the sizes that the end of the file tells.
func (d *dumpi) sizes() {
	for _, l := range d.types.late {
		t, known := d.types.told[l.id]
		if !known || t.size == 0 {
			d.fail(l.line, "the trace does not tell the size of datatype %d: expected a call that makes it, "+
				"MPI_Type_size, or sizes of datatypes at the end (dumpi2ascii -X)", l.id)
			return
		}
		d.fits(l.line, l.grow(&d.calls[l.call], t.size))
	}
	for id, b := range basics {
		if t := d.types.told[id]; d.types.used[id] && t.size != 0 && t.size != b.size {
			d.fail(t.line, "%s has %d bytes, expected %d: this trace is of another kind of machine", b.name, t.size, b.size)
		}
	}
}

// makes is a call that makes a datatype of an old one: what its size is.
func makes(size func(d *dumpi) (size uint64, known bool)) func(d *dumpi, c *call) {
	return func(d *dumpi, _ *call) {
		size, known := size(d)
		id := d.datatype("newtype")
		if delete(d.types.size, id); known {
			d.types.size[id] = size
		}
	}
}

// old is the size of the old type, multiplied by numbers.
func (d *dumpi) old(factors ...uint64) (size uint64, known bool) {
	size, known = d.types.of(d.datatype("oldtype"))
	for _, n := range factors {
		d.fits(d.at, times(&size, n))
	}
	return size, known
}

// sum adds numbers of an array.
func (d *dumpi) sum(name string) (n uint64) {
	for _, x := range d.naturals(name) {
		n += x
	}
	return n
}

// fields is the size of a structure.
func (d *dumpi) fields(lengths string) (size uint64, known bool) {
	numbers, old := d.naturals(lengths), d.list("oldtypes")
	if len(numbers) != len(old) {
		d.fail(d.find("oldtypes").line, "%s: %d oldtypes, expected %d, as there are %s", d.name, len(old), len(numbers), lengths)
		return 0, false
	}
	for i, n := range numbers {
		one, is := d.types.of(old[i])
		if !is {
			return 0, false
		}
		d.fits(d.at, times(&n, one))
		size += n
	}
	d.fits(d.at, size <= maxBytes)
	return size, true
}

// typeCalls are the calls that tell sizes of datatypes.
var typeCalls = map[string]func(d *dumpi, c *call){
	"Type_contiguous":           makes(func(d *dumpi) (uint64, bool) { return d.old(d.natural("count")) }),
	"Type_vector":               makes(vector),
	"Type_hvector":              makes(vector),
	"Type_create_hvector":       makes(vector),
	"Type_create_indexed_block": makes(vector),
	"Type_indexed":              makes(func(d *dumpi) (uint64, bool) { return d.old(d.sum("lengths")) }),
	"Type_hindexed":             makes(func(d *dumpi) (uint64, bool) { return d.old(d.sum("lengths")) }),
	"Type_create_hindexed":      makes(func(d *dumpi) (uint64, bool) { return d.old(d.sum("blocklengths")) }),
	"Type_struct":               makes(func(d *dumpi) (uint64, bool) { return d.fields("lengths") }),
	"Type_create_struct":        makes(func(d *dumpi) (uint64, bool) { return d.fields("blocklengths") }),
	"Type_create_subarray":      makes(func(d *dumpi) (uint64, bool) { return d.old(d.naturals("subsizes")...) }),
	"Type_create_darray":        makes(func(*dumpi) (uint64, bool) { return 0, false }),
	"Type_dup":                  makes(func(d *dumpi) (uint64, bool) { return d.old() }),
	"Type_create_resized":       makes(func(d *dumpi) (uint64, bool) { return d.old() }),
	"Type_size":                 sized,
	"Type_match_size":           sized,
}

func vector(d *dumpi) (uint64, bool) { return d.old(d.natural("count"), d.natural("blocklength")) }

// sized is a call whose answer is the size of a datatype.
func sized(d *dumpi, _ *call) {
	if id := d.datatype("datatype"); id >= len(basics) {
		d.types.size[id] = d.natural("size")
	}
}
