package memcached

import (
	"math"
	"strconv"
	"strings"
)

// Version is the version of memcached whose answers the server gives.
const Version = "1.6.18"

// started is the second in which the server begins. It is not 0, because 0
// means never.
const started = 2

// command executes a line.
func (x *Session) command(line []byte) {
	x.tokens = x.tokens[:0]
	for i := 0; i < len(line); {
		if line[i] == ' ' {
			i++
			continue
		}
		from := i
		for i < len(line) && line[i] != ' ' {
			i++
		}
		x.tokens = append(x.tokens, line[from:i])
	}
	x.commands++
	if len(x.tokens) == 0 {
		x.say(unknown)
		return
	}
	name := string(x.tokens[0])
	args := x.tokens[1:]
	switch name {
	case "get", "gets":
		x.gets(args, name == "gets")
	case "gat", "gats":
		x.gats(args, name == "gats")
	case "set":
		x.storage(set, args)
	case "add":
		x.storage(add, args)
	case "replace":
		x.storage(replace, args)
	case "append":
		x.storage(appendTo, args)
	case "prepend":
		x.storage(prependTo, args)
	case "cas":
		x.storage(checkAndSet, args)
	case "incr", "decr":
		x.arithmetic(args, name == "incr")
	case "delete":
		x.remove(args)
	case "touch":
		x.touch(args)
	case "flush_all":
		x.flush(args)
	case "stats":
		x.stats(args)
	case "version":
		x.say("VERSION " + Version + "\r\n")
	case "verbosity":
		x.verbosity(args)
	case "quit":
		x.closed = true
	default:
		x.say(unknown)
	}
}

// quiet reports whether the last argument asks for no answer.
func quiet(args [][]byte) bool { return len(args) > 0 && string(args[len(args)-1]) == "noreply" }

// gets executes get and gets.
func (x *Session) gets(keys [][]byte, unique bool) {
	if len(keys) == 0 {
		x.say(unknown)
		return
	}
	begin := len(x.out)
	for _, key := range keys {
		if len(key) > MaxKey { // earlier values are not sent either (process_get_command)
			x.out = x.out[:begin]
			x.say(badLine)
			return
		}
		r := x.store.get(key)
		if r == 0 {
			x.store.Stats.GetMisses++
			continue
		}
		x.store.Stats.GetHits++
		if x.item(key, r, unique); x.over(begin) {
			return
		}
	}
	x.say(end)
}

// over reports whether the answer to a line exceeds the limit of memory. Then
// it is not sent.
func (x *Session) over(begin int) bool {
	if len(x.out)-begin <= maxAnswer {
		return false
	}
	x.out = x.out[:begin]
	x.say(outOfMemoryGet)
	return true
}

// item sends an item.
func (x *Session) item(key []byte, r ref, unique bool) {
	it := x.store.item(r)
	x.say("VALUE ")
	x.out = append(x.out, key...)
	x.out = append(x.out, ' ')
	x.out = strconv.AppendUint(x.out, uint64(it.flags), 10)
	x.out = append(x.out, ' ')
	x.out = strconv.AppendUint(x.out, uint64(it.length), 10)
	if unique {
		x.out = append(x.out, ' ')
		x.out = strconv.AppendUint(x.out, it.cas, 10)
	}
	x.say("\r\n")
	x.out = x.store.value(x.out, r)
	x.say("\r\n")
}

// gats executes gat and gats: reads that set the expiry time.
func (x *Session) gats(args [][]byte, unique bool) {
	if len(args) == 0 {
		x.say(unknown)
		return
	}
	t, ok := number(args[0])
	if !ok {
		x.say(badTime)
		return
	}
	begin := len(x.out)
	for _, key := range args[1:] {
		if len(key) > MaxKey {
			x.out = x.out[:begin]
			x.say(badLine)
			return
		}
		if r := x.store.touch(key, x.store.expiry(t)); r != 0 {
			x.store.Stats.GetHits++
			if x.item(key, r, unique); x.over(begin) {
				return
			}
		} else {
			x.store.Stats.GetMisses++
		}
	}
	x.say(end)
}

// storage begins a storage command. Its arguments are key, flags, time, length,
// and for cas the unique number.
func (x *Session) storage(v verb, args [][]byte) {
	n := 4
	if v == checkAndSet {
		n++
	}
	if len(args) != n && len(args) != n+1 {
		x.say(unknown)
		return
	}
	p := &x.pending
	p.quiet = quiet(args)
	key := args[0]
	flags, ok := natural(args[1])
	t, okT := number(args[2])
	length, okL := number(args[3])
	ok = ok && okT && okL && len(key) <= MaxKey && length >= 0 && length <= math.MaxInt32-2
	if ok && v == checkAndSet {
		p.unique, ok = natural(args[4])
	}
	if !ok {
		x.answer(p.quiet, badLine)
		return
	}
	if itemBytes(len(key), int(length), uint32(flags)) > pageBytes {
		x.answer(p.quiet, tooLarge)
		x.swallow = int(length) + 2
		if v == set { // the old value would be wrong
			if r := x.store.find(key, hash(key)); r != 0 {
				x.store.unlink(r)
			}
		}
		return
	}
	p.wanted, p.verb, p.nkey, p.length = true, v, copy(p.key[:], key), int(length)
	p.flags, p.expires = uint32(flags), x.store.expiry(t)
	x.commands-- // it counts when its value has arrived
}

func (x *Session) arithmetic(args [][]byte, up bool) {
	if len(args) != 2 && len(args) != 3 {
		x.say(unknown)
		return
	}
	if len(args[0]) > MaxKey {
		x.answer(quiet(args), badLine)
		return
	}
	delta, ok := natural(args[1])
	if !ok {
		x.answer(quiet(args), badDelta)
		return
	}
	before := len(x.out)
	x.out = x.store.count(x.out, args[0], up, delta)
	if quiet(args) {
		x.out = x.out[:before]
	}
}

func (x *Session) remove(args [][]byte) {
	switch {
	case len(args) < 1 || len(args) > 3:
		x.say(unknown)
		return
	case len(args) > 1 && !(len(args) == 2 && (quiet(args) || string(args[1]) == "0") || len(args) == 3 && string(args[1]) == "0" && quiet(args)):
		x.answer(quiet(args), badDelete)
		return
	case len(args[0]) > MaxKey:
		x.answer(quiet(args), badLine)
		return
	}
	x.answer(quiet(args), x.store.remove(args[0]))
}

func (x *Session) touch(args [][]byte) {
	if len(args) != 2 && len(args) != 3 {
		x.say(unknown)
		return
	}
	if len(args[0]) > MaxKey {
		x.answer(quiet(args), badLine)
		return
	}
	t, ok := number(args[1])
	if !ok {
		x.answer(quiet(args), badTime)
		return
	}
	answer := notFound
	if x.store.touch(args[0], x.store.expiry(t)) != 0 {
		answer = touched
	}
	x.answer(quiet(args), answer)
}

func (x *Session) flush(args [][]byte) {
	silent := quiet(args)
	if silent {
		args = args[:len(args)-1]
	}
	var delay int32
	if len(args) > 0 {
		var ok bool
		if delay, ok = number(args[0]); !ok {
			x.answer(silent, badTime)
			return
		}
	}
	x.store.flush(x.store.expiry(delay))
	x.answer(silent, fine)
}

func (x *Session) verbosity(args [][]byte) {
	if len(args) == 0 {
		x.say(unknown)
		return
	}
	if _, ok := natural(args[0]); !ok {
		x.answer(quiet(args), badLine)
		return
	}
	x.answer(quiet(args), fine)
}

// stats sends the store's statistics under memcached's names.
func (x *Session) stats(args [][]byte) {
	if len(args) > 0 {
		x.say(unknown)
		return
	}
	var b strings.Builder
	s := &x.store.Stats
	for _, line := range []struct {
		name string
		n    int64
	}{
		{"cmd_get", s.GetHits + s.GetMisses},
		{"cmd_set", s.Sets},
		{"cmd_flush", s.FlushAll},
		{"cmd_touch", s.Touches},
		{"get_hits", s.GetHits},
		{"get_misses", s.GetMisses},
		{"get_expired", s.GetExpired},
		{"delete_misses", s.DeleteMisses},
		{"delete_hits", s.Deletes},
		{"incr_misses", s.IncrMisses},
		{"incr_hits", s.IncrHits},
		{"decr_misses", s.DecrMisses},
		{"decr_hits", s.DecrHits},
		{"cas_misses", s.CasMisses},
		{"cas_hits", s.CasHits},
		{"cas_badval", s.CasBad},
		{"touch_hits", s.TouchHits},
		{"touch_misses", s.Touches - s.TouchHits},
		{"limit_maxbytes", x.store.config.Limit},
		{"bytes", s.Bytes},
		{"curr_items", s.Items},
		{"total_items", s.TotalItems},
		{"evictions", s.Evictions},
		{"reclaimed", s.Reclaimed},
	} {
		b.WriteString("STAT " + line.name + " " + strconv.FormatInt(line.n, 10) + "\r\n")
	}
	x.say(b.String())
	x.say(end)
}

// number reads a signed or unsigned 64-bit number and returns its lower 32 bits
// (safe_strtol).
func number(b []byte) (int32, bool) {
	n, err := strconv.ParseInt(string(b), 10, 64)
	return int32(n), err == nil
}

// natural reads a 64-bit number that is not negative (safe_strtoull).
func natural(b []byte) (uint64, bool) {
	if len(b) > 1 && b[0] == '+' && b[1] != '+' {
		b = b[1:]
	}
	n, err := strconv.ParseUint(string(b), 10, 64)
	return n, err == nil
}
