"""A process of a script: gets commands as lines of JSON on standard input, calls the library, answers with a line of JSON each."""

import ctypes as C
import json
import mmap
import os
import sys
import threading
import time
import traceback

from interface import *

class Worker:
    """A process of a script."""

    size = 1 << 16  # bytes of memory that a script addresses

    def __init__(self, library):
        self.lib = C.CDLL(library)
        self.memory = mmap.mmap(-1, self.size)
        self.base = C.addressof(C.c_char.from_buffer(self.memory))
        self.handles, self.list_entries, self.kept, self.ids, self.ni = {}, set(), [], [], U32()
        self.aborted = False

    def serve(self):
        for line in sys.stdin:
            try:
                answer = self.answer(json.loads(line))
            except LeftOut as e:
                answer = {"left out": str(e)}
            except Exception:  # a mistake of this program must not pass for one of the library
                answer = {"mistake": traceback.format_exc()}
            print(json.dumps(answer), flush=True)
        os._exit(0)  # the library's own end takes seconds

    def answer(self, c):
        if c["verb"] == "!begin":
            codes = [
                self.lib.PtlInit(),
                self.lib.PtlNIInit(INVALID, options(NI_OPTIONS, c["flags"]), U32(0xFFFF), None, None, C.byref(self.ni)),
            ]
            own = Process()
            self.lib.PtlGetPhysId(self.ni, C.byref(own))
            return {"codes": codes, "id": [own.phys.nid, own.phys.pid]}
        if c["verb"] == "!ids":
            self.ids = [tuple(i) for i in c["ids"]]
            return {}
        if c["ni"]:
            raise LeftOut("several interfaces")
        self.c, self.out = c, []
        command = getattr(self, "do_" + c["verb"], None)
        if command is None:
            raise LeftOut("command " + c["verb"])
        command(c["pos"], c["args"])
        return {"out": self.out}

    # Arguments.

    def arg(self, name, default="0"):
        return number(self.c["args"].get(name, default))

    def handle(self, name, none=INVALID):
        if name == "none":
            return none
        if name.startswith("#") or "." in name:
            raise LeftOut("handle " + name)
        return self.handles.get(name, INVALID)

    def process(self, name):
        p = Process()
        if name == "any":
            p.phys.nid = p.phys.pid = 0xFFFF
        elif name.isdigit() and int(name) < len(self.ids):
            p.phys.nid, p.phys.pid = self.ids[int(name)]
        else:
            raise LeftOut("process " + name)
        return p

    def vector(self):
        """Address and length of an argument iov."""
        parts = [p.split(":") for p in self.c["args"]["iov"].split(",") if p]
        vector = (IOVec * max(1, len(parts)))()
        for v, (base, length) in zip(vector, parts):
            v.base, v.length = self.base + number(base), number(length)
        self.kept.append(vector)
        return C.addressof(vector), len(parts)

    def trigger(self):
        if "trig" not in self.c["args"]:
            return "", []
        return "Triggered", [U32(self.handle(self.c["args"]["trig"], CT_NONE)), U64(self.arg("threshold"))]

    # Results.

    def say(self, text):
        self.out.append("%d: %s" % (self.c["proc"], text))

    def result(self, code, name=None, handle=None):
        """Notes an error, or keeps a new handle."""
        if code:
            self.say("%s: %s" % (self.c["verb"], CODES[code]))
        elif name is not None:
            self.handles[name] = handle.value
        return code == 0

    def event(self, e):
        kind, text = EVENTS[e.type], [EVENTS[e.type]]
        if e.fail:
            text.append(FAILS[e.fail])
        if kind in ("SEND", "ACK", "REPLY"):
            text.append("mlength=%d" % e.mlength)
            text += ["roff=%d" % e.roff] if e.roff else []
        elif kind == "PT_DISABLED":
            return " ".join(text + ["pt=%d" % e.pt])
        elif kind not in ("LINK", "AUTO_UNLINK", "AUTO_FREE") and FAILS[e.fail] != "NO_MATCH":
            own = (e.initiator.phys.nid, e.initiator.phys.pid)
            text.append("from=%s" % ("%d/0" % self.ids.index(own) if own in self.ids else own))
            text += ["pt=%d" % e.pt] if e.pt else []
            text += ["bits=%#x" % e.bits] if e.bits else []
            text += ["hdr=%#x" % e.hdr] if e.hdr else []
            text.append("start=%#x" % (e.start - self.base if e.start else 0))
            text.append("length=%d" % e.mlength if e.rlength == e.mlength else "rlength=%d mlength=%d" % (e.rlength, e.mlength))
            text += ["roff=%d" % e.roff] if e.roff else []
            if kind.startswith(("ATOMIC", "FETCH")):
                text.append(OPS[e.op] + " " + TYPES[e.datatype])
        text += ["user=%d" % e.user] if e.user else []
        text += ["overflow"] if e.list == 1 else []
        return " ".join(text)

    # Commands.

    def do_pt(self, pos, args):
        if "options" in args:
            raise LeftOut("options")
        index, got = INVALID if pos[0] == "any" else number(pos[0]), U32()
        queue = U32(self.handle(args.get("eq", "none"), EQ_NONE))
        code = self.lib.PtlPTAlloc(self.ni, options(PT_OPTIONS, self.c["flags"]), queue, U32(index), C.byref(got))
        if self.result(code) and pos[0] == "any":
            self.say("portal table entry %d" % got.value)

    def do_ptfree(self, pos, _):
        self.result(self.lib.PtlPTFree(self.ni, U32(number(pos[0]))))

    def do_ptenable(self, pos, _):
        self.result(self.lib.PtlPTEnable(self.ni, U32(number(pos[0]))))

    def do_ptdisable(self, pos, _):
        self.result(self.lib.PtlPTDisable(self.ni, U32(number(pos[0]))))

    def do_eq(self, pos, _):
        h = U32()
        self.result(self.lib.PtlEQAlloc(self.ni, U64(number(pos[1])), C.byref(h)), pos[0], h)

    def do_eqfree(self, pos, _):
        self.result(self.lib.PtlEQFree(U32(self.handle(pos[0]))))

    def do_events(self, pos, _):
        quiet, some = time.monotonic() + 0.03, False
        while True:
            e = Event()
            code = CODES[self.lib.PtlEQGet(U32(self.handle(pos[0])), C.byref(e))]
            if code == "EQ_EMPTY":
                if time.monotonic() < quiet:
                    time.sleep(0.002)
                    continue
                if not some:
                    self.say("%s: no events" % pos[0])
                return
            if code == "EQ_DROPPED":
                self.say("%s: EQ_DROPPED" % pos[0])
            elif code != "OK":
                self.result(CODES.index(code))
                return
            quiet, some = time.monotonic() + 0.03, True
            self.say("%s: %s" % (pos[0], self.event(e)))

    def do_get1(self, pos, _):
        e = Event()
        code = self.lib.PtlEQGet(U32(self.handle(pos[0])), C.byref(e))
        if self.result(code) or CODES[code] == "EQ_DROPPED":
            self.say("%s: %s" % (pos[0], self.event(e)))

    def do_eqpoll(self, pos, _):
        queues, e, which = (U32 * len(pos))(*map(self.handle, pos)), Event(), C.c_uint()
        code = self.poll(lambda timeout: self.lib.PtlEQPoll(queues, len(pos), timeout, C.byref(e), C.byref(which)))
        if self.result(code) or CODES[code] == "EQ_DROPPED":
            self.say("queue %d: %s" % (which.value, self.event(e)))

    def do_ct(self, pos, _):
        h = U32()
        self.result(self.lib.PtlCTAlloc(self.ni, C.byref(h)), pos[0], h)

    def do_ctfree(self, pos, _):
        self.result(self.lib.PtlCTFree(U32(self.handle(pos[0]))))

    def do_ctcancel(self, pos, _):
        self.result(self.lib.PtlCTCancelTriggered(U32(self.handle(pos[0]))))

    def do_counter(self, pos, _):
        for name in pos:
            v = Count()
            if not self.result(self.lib.PtlCTGet(U32(self.handle(name)), C.byref(v))):
                return
            self.say("%s: success %d, failure %d" % (name, v.success, v.failure))

    def do_ctpoll(self, pos, _):
        counters, tests = list(map(self.handle, pos[::2])), list(map(number, pos[1::2]))
        v, which = Count(), C.c_uint()
        code = self.poll(lambda timeout: self.lib.PtlCTPoll(
            (U32 * len(counters))(*counters), (U64 * len(tests))(*tests), len(counters), timeout, C.byref(v), C.byref(which)
        ))
        if self.result(code):
            self.say("counter %d: success %d, failure %d" % (which.value, v.success, v.failure))

    def count(self, call, pos):
        prefix, trigger = self.trigger()
        value = Count(self.arg("success"), self.arg("failure"))
        self.result(getattr(self.lib, "Ptl" + prefix + call)(U32(self.handle(pos[0])), value, *trigger))

    def do_ctset(self, pos, _):
        self.count("CTSet", pos)

    def do_ctinc(self, pos, _):
        self.count("CTInc", pos)

    def do_md(self, pos, args):
        if "options" in args:
            raise LeftOut("options")
        m, h = MD(), U32()
        m.start, m.length, m.options = self.base + self.arg("start"), self.arg("len"), options(MD_OPTIONS, self.c["flags"])
        if "iov" in args:
            m.start, m.length = self.vector()
            m.options |= 1
        m.eq, m.ct = self.handle(args.get("eq", "none"), EQ_NONE), self.handle(args.get("ct", "none"), CT_NONE)
        self.result(self.lib.PtlMDBind(self.ni, C.byref(m), C.byref(h)), pos[0], h)

    def do_mdrelease(self, pos, _):
        self.result(self.lib.PtlMDRelease(U32(self.handle(pos[0]))))

    def entry(self, args, plain):
        """The entry, portal table index and user pointer of an append or a search."""
        for key in args:
            if key not in "pt bits ignore start len iov ct from minfree list user trig threshold".split():
                raise LeftOut(key)
        m = ME()
        m.start, m.length, m.options = self.base + self.arg("start"), self.arg("len"), options(ENTRY_OPTIONS, self.c["flags"])
        if "iov" in args:
            m.start, m.length = self.vector()
            m.options |= 1
        m.ct, m.uid, m.match_id = self.handle(args.get("ct", "none"), CT_NONE), INVALID, self.process(args.get("from", "any"))
        m.bits, m.ignore, m.min_free = self.arg("bits"), self.arg("ignore"), self.arg("minfree")
        if plain:
            m = LE(m.start, m.length, m.ct, m.uid, m.options)
        self.kept.append(m)
        return m, U32(self.arg("pt")), PTR(self.arg("user"))

    def append(self, pos, args, plain):
        m, pt, user = self.entry(args, plain)
        which = args.get("list", "priority")
        if which not in ("priority", "overflow"):
            raise LeftOut("list " + which)
        prefix, trigger = self.trigger()
        h = U32()
        call = getattr(self.lib, "Ptl" + prefix + ("LEAppend" if plain else "MEAppend"))
        (self.list_entries.add if plain else self.list_entries.discard)(pos[0])
        self.result(call(self.ni, pt, C.byref(m), U8(which == "overflow"), user, C.byref(h), *trigger), pos[0], h)

    def do_me(self, pos, args):
        self.append(pos, args, False)

    def do_le(self, pos, args):
        self.append(pos, args, True)

    def do_unlink(self, pos, _):
        prefix, trigger = self.trigger()
        call = "LEUnlink" if pos[0] in self.list_entries else "MEUnlink"
        self.result(getattr(self.lib, "Ptl" + prefix + call)(U32(self.handle(pos[0])), *trigger))

    do_leunlink = do_unlink

    def look(self, pos, args, plain):
        if pos[0] not in ("only", "delete"):
            raise LeftOut("search " + pos[0])
        m, pt, user = self.entry(args, plain)
        call = self.lib.PtlLESearch if plain else self.lib.PtlMESearch
        self.result(call(self.ni, pt, C.byref(m), U8(pos[0] == "delete"), user))

    def do_search(self, pos, args):
        self.look(pos, args, False)

    def do_lesearch(self, pos, args):
        self.look(pos, args, True)

    def transfer(self, call, pos, args, ack=False, header=True, result=False, kind=False, swap=False):
        if "to" not in args or "nid" in args or "pid" in args:
            raise LeftOut("target without a number")
        prefix, trigger = self.trigger()
        list_ = []
        if result:
            list_ += [U32(self.handle(args.get("get", "none"))), U64(self.arg("goff"))]
        list_ += [U32(self.handle(pos[0])), U64(self.arg("off")), U64(self.arg("len"))]
        if ack:
            if args.get("ack", "NO_ACK") not in ACKS:
                raise LeftOut("ack " + args["ack"])
            list_.append(U8(ACKS[args.get("ack", "NO_ACK")]))
        list_ += [self.process(args["to"]), U32(self.arg("pt")), U64(self.arg("bits")), U64(self.arg("roff")), PTR(self.arg("user"))]
        if header:
            list_.append(U64(self.arg("hdr")))
        if swap:
            operand = C.create_string_buffer(encode(args["type"], args["operand"]), 32) if "operand" in args else None
            self.kept.append(operand)
            list_.append(C.cast(operand, PTR) if operand else None)
        if kind:
            if args.get("op", "MIN") not in OPS or args.get("type", "INT8_T") not in TYPES:
                raise LeftOut("unknown operation or type")
            list_ += [U8(OPS.index(args.get("op", "MIN"))), U8(TYPES.index(args.get("type", "INT8_T")))]
        self.result(getattr(self.lib, "Ptl" + prefix + call)(*list_, *trigger))

    def do_put(self, pos, args):
        self.transfer("Put", pos, args, ack=True)

    def do_get(self, pos, args):
        self.transfer("Get", pos, args, header=False)

    def do_atomic(self, pos, args):
        self.transfer("Atomic", pos, args, ack=True, kind=True)

    def do_fetch(self, pos, args):
        self.transfer("FetchAtomic", pos, args, result=True, kind=True)

    def do_swap(self, pos, args):
        self.transfer("Swap", pos, args, result=True, kind=True, swap=True)

    def do_status(self, pos, _):
        if pos:
            raise LeftOut("register " + pos[0])
        values = []
        for register in range(3):
            v = C.c_int()
            self.lib.PtlNIStatus(self.ni, register, C.byref(v))
            values.append(v.value)
        self.say("drops %d, permission violations %d, operation violations %d" % tuple(values))

    def do_abort(self, _, __):
        self.aborted = True
        self.lib.PtlAbort()

    def poll(self, call):
        """Polls; once the process is aborted, so that the call is under way when that is said again: what is there already is found first."""
        if not self.aborted:
            return call(C.c_uint(50))
        codes = []
        waits = threading.Thread(target=lambda: codes.append(call(C.c_uint(3000))))
        waits.start()
        waits.join(0.1)
        self.lib.PtlAbort()
        waits.join()
        return codes[0]

    def do_atomicsync(self, _, __):
        self.result(self.lib.PtlAtomicSync())

    def do_startbundle(self, _, __):
        self.result(self.lib.PtlStartBundle(self.ni))

    def do_endbundle(self, _, __):
        self.result(self.lib.PtlEndBundle(self.ni))

    # Memory.

    def do_fill(self, pos, _):
        b = b"".join(json.loads(s).encode() if s[0] == '"' else bytes.fromhex(s) for s in pos[1:])
        self.memory[number(pos[0]) : number(pos[0]) + len(b)] = b

    def do_mem(self, pos, _):
        at, n = number(pos[0]), number(pos[1])
        b = self.memory[at : at + n]
        printable = all(v == 0 or 32 <= v <= 126 for v in b)
        text = "".join(chr(v) if v else "." for v in b) if printable else b.hex(" ")
        self.say("%#x: %s" % (at, text))

    def do_store(self, pos, args):
        at = number(pos[0])
        b = b"".join(encode(args["type"], s) for s in pos[1:])
        self.memory[at : at + len(b)] = b

    def do_load(self, pos, args):
        at, n, size = number(pos[0]), number(pos[1]) if len(pos) > 1 else 1, size_of(args["type"])
        self.say(" ".join(decode(args["type"], self.memory[at + i * size : at + (i + 1) * size]) for i in range(n)))


if __name__ == "__main__":
    Worker(sys.argv[1]).serve()
