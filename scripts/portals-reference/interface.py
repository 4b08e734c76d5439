"""The C interface of Portals 4 as its header declares it, and how scripts write numbers."""

import ctypes as C
import struct

U8, U32, U64, PTR = C.c_ubyte, C.c_uint32, C.c_uint64, C.c_void_p


class Phys(C.Structure):
    _fields_ = [("nid", U32), ("pid", U32)]


class Process(C.Union):
    _fields_ = [("rank", U32), ("phys", Phys)]


class MD(C.Structure):
    _fields_ = [("start", PTR), ("length", U64), ("options", C.c_uint), ("eq", U32), ("ct", U32)]


class LE(C.Structure):
    _fields_ = [("start", PTR), ("length", U64), ("ct", U32), ("uid", U32), ("options", C.c_uint)]


class ME(C.Structure):
    _fields_ = LE._fields_ + [("match_id", Process), ("bits", U64), ("ignore", U64), ("min_free", U64)]


class IOVec(C.Structure):
    _fields_ = [("base", PTR), ("length", U64)]


class Count(C.Structure):
    _fields_ = [("success", U64), ("failure", U64)]


class Event(C.Structure):
    _fields_ = [(n, PTR) for n in ("start", "user")]
    _fields_ += [(n, U64) for n in ("hdr", "bits", "rlength", "mlength", "roff")]
    _fields_ += [("initiator", Process), ("uid", U32), ("pt", U32)]
    _fields_ += [(n, U8) for n in ("type", "list", "fail", "op", "datatype")]


CODES = """OK ARG_INVALID CT_NONE_REACHED EQ_DROPPED EQ_EMPTY FAIL IGNORED IN_USE LIST_TOO_LONG NO_INIT NO_SPACE PID_IN_USE
PT_FULL PT_EQ_NEEDED PT_IN_USE ABORTED""".split()
EVENTS = """GET GET_OVERFLOW PUT PUT_OVERFLOW ATOMIC ATOMIC_OVERFLOW FETCH_ATOMIC FETCH_ATOMIC_OVERFLOW REPLY SEND ACK PT_DISABLED LINK
AUTO_UNLINK AUTO_FREE SEARCH""".split()
FAILS = "OK UNDELIVERABLE DROPPED PT_DISABLED PERM_VIOLATION OP_VIOLATION NO_MATCH SEGV".split()
OPS = """MIN MAX SUM PROD LOR LAND BOR BAND LXOR BXOR SWAP CSWAP CSWAP_NE CSWAP_LE CSWAP_LT CSWAP_GE CSWAP_GT MSWAP""".split()
TYPES = """INT8_T UINT8_T INT16_T UINT16_T INT32_T UINT32_T FLOAT INT64_T UINT64_T DOUBLE FLOAT_COMPLEX DOUBLE_COMPLEX LONG_DOUBLE
LONG_DOUBLE_COMPLEX""".split()
ENTRY_OPTIONS = """IOVEC OP_PUT OP_GET USE_ONCE UNEXPECTED_HDR_DISABLE IS_ACCESSIBLE EVENT_LINK_DISABLE EVENT_COMM_DISABLE
EVENT_FLOWCTRL_DISABLE EVENT_SUCCESS_DISABLE EVENT_OVER_DISABLE EVENT_UNLINK_DISABLE EVENT_CT_COMM EVENT_CT_OVERFLOW EVENT_CT_BYTES
MANAGE_LOCAL NO_TRUNCATE MAY_ALIGN LOCAL_INC_UH_RLENGTH""".split()
ENTRY_OPTIONS = {name: 1 << i for i, name in enumerate(ENTRY_OPTIONS)}
MD_OPTIONS = {
    "IOVEC": 1, "EVENT_CT_SEND": 2, "EVENT_CT_REPLY": 4, "EVENT_CT_ACK": 8, "UNORDERED": 16, "EVENT_SUCCESS_DISABLE": 32,
    "VOLATILE": 64, "EVENT_SEND_DISABLE": 128, "UNRELIABLE": 256, "EVENT_CT_BYTES": 1 << 14,
}
PT_OPTIONS = {"ONLY_USE_ONCE": 1, "FLOWCTRL": 2, "ONLY_TRUNCATE": 4, "MATCH_UNORDERED": 8, "ALLOC_DISABLED": 16}
NI_OPTIONS = {"MATCHING": 1, "NO_MATCHING": 2, "LOGICAL": 4, "PHYSICAL": 8}
ACKS = {"NO_ACK": 0, "ACK": 1, "CT_ACK": 2, "OC_ACK": 3}
EQ_NONE, CT_NONE, INVALID = 0x3FFFFFFF, 0x5FFFFFFF, 0xFFFFFFFF
NUMBERS = {
    "INT8_T": "b", "UINT8_T": "B", "INT16_T": "h", "UINT16_T": "H", "INT32_T": "i", "UINT32_T": "I", "INT64_T": "q",
    "UINT64_T": "Q", "FLOAT": "f", "DOUBLE": "d",
}


class LeftOut(Exception):
    """A script asks for something that cannot be had here."""


def number(text):
    if text == "max":
        return 2**64 - 1
    return (-int(text[1:], 0) if text.startswith("-") else int(text, 0)) % 2**64


def options(names, flags):
    for flag in flags:
        if flag not in names:
            raise LeftOut("option " + flag)
    return sum(names[f] for f in set(flags))


def encode(kind, text):
    if kind in ("FLOAT_COMPLEX", "DOUBLE_COMPLEX"):
        return b"".join(encode(kind.split("_")[0], part) for part in text.split(","))
    if kind not in NUMBERS:
        raise LeftOut("type " + kind)
    if kind in ("FLOAT", "DOUBLE"):
        return struct.pack("<" + NUMBERS[kind], float(text))
    size = struct.calcsize(NUMBERS[kind])
    return (number(text) % 2 ** (8 * size)).to_bytes(size, "little")


def size_of(kind):
    if kind in ("FLOAT_COMPLEX", "DOUBLE_COMPLEX"):
        return 2 * size_of(kind.split("_")[0])
    if kind not in NUMBERS:
        raise LeftOut("type " + kind)
    return struct.calcsize(NUMBERS[kind])


def decode(kind, b):
    """The value as Go prints it."""
    if kind in ("FLOAT_COMPLEX", "DOUBLE_COMPLEX"):
        half = len(b) // 2
        return ",".join(decode(kind.split("_")[0], p) for p in (b[:half], b[half:]))
    (v,) = struct.unpack("<" + NUMBERS[kind], b)
    if kind not in ("FLOAT", "DOUBLE"):
        return str(v)
    if v != v:
        return "NaN"
    if abs(v) == float("inf"):
        return "+Inf" if v > 0 else "-Inf"
    text = repr(v)
    if kind == "FLOAT":
        text = next(t for t in ("%.*g" % (p, v) for p in range(1, 10)) if struct.pack("<f", float(t)) == b)
    if "e" in text or v != 0 and not 1e-4 <= abs(v) < 1e21:
        raise LeftOut("number with an exponent")
    return text.removesuffix(".0")
