/* spin.h: packet handlers in C (docs/abi.md is the contract, docs/handlers.md the guide).
 *
 * Freestanding; compile with clang --target=wasm32. The records, codes and imports are those of
 * package spin; the functions and constants have the names of P4sPIN (sPIN'17 §2 and appendix).
 * Functions return PTL_OK (0) or more, or a negative SPIN_ result.
 */
#ifndef SPIN_H
#define SPIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define _Static_assert static_assert
#define SPIN_C extern "C"
extern "C" {
#else
#define SPIN_C
#endif

#if defined(__wasm__)
#define SPIN_IMPORT(name) __attribute__((import_module("spin"), import_name(#name)))
/* SPIN_HANDLER(name) defines the handler `int name(args, state)` and exports it. */
#define SPIN_HANDLER(name) SPIN_C __attribute__((export_name(#name))) int32_t name
/* SPIN_FIELD("unit=bytes default=mtu min=1 max=65536 name=other") behind the name of a field of the state: what the manifest
 * says of it (docs/handlers.md, The manifest). Each of the words may be left out. */
#ifdef __cplusplus
#define SPIN_FIELD(words) /* the builder reads it in the source */
#else
#define SPIN_FIELD(words) __attribute__((btf_decl_tag("spin:" words)))
#endif
/* SPIN_NEEDS("packets=first,last") in front of a handler: what //spin:needs says in a source, from a header. */
#ifdef __cplusplus
#define SPIN_NEEDS(words) static_assert(false, "SPIN_NEEDS is for C; in C++ write //spin:needs handler=NAME " words);
#else
#define SPIN_NEEDS(words) __attribute__((btf_decl_tag("spin:" words)))
#endif
#else
#define SPIN_IMPORT(name)
#define SPIN_HANDLER(name) int32_t name
#define SPIN_FIELD(words)
#define SPIN_NEEDS(words)
#endif

/* Return codes of handlers. */
enum {
	PTL_SUCCESS = 0,
	PTL_SUCCESS_PENDING = 1,
	PTL_DROP = 2, /* header: run no payload handlers, drop the message; payload: drop the packet */
	PTL_DROP_PENDING = 3,
	PTL_PROCESS_DATA = 4, /* header: run the other handlers */
	PTL_PROCESS_DATA_PENDING = 5,
	PTL_PROCEED = 6, /* header: run no other handlers, take the default action */
	PTL_PROCEED_PENDING = 7,
	PTL_FAIL = -1,
	PTL_SEGV = -2,
};

/* Results of actions. */
enum {
	PTL_OK = 0,
	SPIN_FAULT = -1,         /* host page not present, after all tries of the device or with SPIN_TELL_FAULTS */
	SPIN_DENIED = -2,        /* outside the range, or forbidden */
	SPIN_INVALID = -3,       /* an argument is wrong */
	SPIN_NO_SPACE = -4,      /* a limit of the device */
	SPIN_NOT_SUPPORTED = -5,
};

/* Host memory spaces. From SPIN_GRANTED_MEM on, in DMA operations: memory that other processes have granted. */
enum { PTL_ME_HOST_MEM = 0, PTL_HANDLER_HOST_MEM = 1, SPIN_GRANTED_MEM = 2 };

/* With a space of a DMA operation: it ends with SPIN_FAULT as soon as a page is found absent. Without it the device
 * waits for the page, and the handler with it, if it waits for the operation. */
enum { SPIN_TELL_FAULTS = 0x100 };

/* Kinds of messages (ptl_header_t.type). */
enum {
	SPIN_MSG_PUT = 0,
	SPIN_MSG_GET = 1,
	SPIN_MSG_ATOMIC = 2,
	SPIN_MSG_FETCH_ATOMIC = 3,
	SPIN_MSG_SWAP = 4,
	SPIN_MSG_SELF = 5, /* a timer or a message to self */
};

/* Bits of ptl_header_t.flags and ptl_op_t.options. */
enum { SPIN_HEADER_OVERFLOW = 1 << 0 };
enum { SPIN_COMPLETE_ENTRY = 1 << 0, SPIN_DATAGRAMS = 1 << 1 };

/* Acknowledgement requests. */
enum { PTL_NO_ACK_REQ = 0, PTL_ACK_REQ = 1, PTL_CT_ACK_REQ = 2, PTL_OC_ACK_REQ = 3 };

/* Atomic operations. */
enum {
	PTL_MIN, PTL_MAX, PTL_SUM, PTL_PROD, PTL_LOR, PTL_LAND, PTL_BOR, PTL_BAND, PTL_LXOR, PTL_BXOR,
	PTL_SWAP, PTL_CSWAP, PTL_CSWAP_NE, PTL_CSWAP_LE, PTL_CSWAP_LT, PTL_CSWAP_GE, PTL_CSWAP_GT, PTL_MSWAP,
};

/* Operations of spin_atomic32: those of RISC-V's extension A, and compare-and-swap. */
enum {
	SPIN_SWAP32, SPIN_CSWAP32, SPIN_ADD32, SPIN_AND32, SPIN_OR32, SPIN_XOR32, SPIN_MIN32, SPIN_MAX32, SPIN_MINU32, SPIN_MAXU32,
};

/* Element types of atomic operations. */
enum {
	PTL_INT8_T, PTL_UINT8_T, PTL_INT16_T, PTL_UINT16_T, PTL_INT32_T, PTL_UINT32_T, PTL_FLOAT, PTL_INT64_T, PTL_UINT64_T,
	PTL_DOUBLE, PTL_FLOAT_COMPLEX, PTL_DOUBLE_COMPLEX, PTL_LONG_DOUBLE, PTL_LONG_DOUBLE_COMPLEX,
};

typedef uint64_t ptl_size_t;
typedef uint64_t ptl_match_bits_t;
typedef uint64_t ptl_hdr_data_t;
typedef uint32_t ptl_pt_index_t;
typedef uint32_t ptl_handle_md_t;
typedef uint32_t ptl_handle_ct_t;
typedef uint32_t ptl_ack_req_t;
typedef int32_t ptl_dma_h; /* a DMA operation under way */
typedef struct {
	uint32_t nid, pid;
} ptl_process_t;
typedef struct {
	uint64_t success, failure;
} ptl_ct_event_t;

/* What a header handler is given: a matched message. */
typedef struct {
	uint32_t type;
	uint32_t user_hdr_len;
	uint64_t length;
	uint64_t mlength;
	uint32_t source_nid;
	uint32_t source_pid;
	uint32_t target_nid;
	uint32_t target_pid;
	uint64_t match_bits;
	uint64_t offset;
	uint64_t hdr_data;
	uint64_t msg_id;
	uint32_t user_hdr;
	uint32_t flags;
	uint32_t atomic_op;
	uint32_t datatype;
	uint32_t packet; /* the first packet, if the entry's header handler sees it */
	uint32_t packet_len;
} ptl_header_t;
_Static_assert(sizeof(ptl_header_t) == 96, "ptl_header_t");
_Static_assert(offsetof(ptl_header_t, type) == 0, "ptl_header_t.type");
_Static_assert(offsetof(ptl_header_t, user_hdr_len) == 4, "ptl_header_t.user_hdr_len");
_Static_assert(offsetof(ptl_header_t, length) == 8, "ptl_header_t.length");
_Static_assert(offsetof(ptl_header_t, mlength) == 16, "ptl_header_t.mlength");
_Static_assert(offsetof(ptl_header_t, source_nid) == 24, "ptl_header_t.source_nid");
_Static_assert(offsetof(ptl_header_t, source_pid) == 28, "ptl_header_t.source_pid");
_Static_assert(offsetof(ptl_header_t, target_nid) == 32, "ptl_header_t.target_nid");
_Static_assert(offsetof(ptl_header_t, target_pid) == 36, "ptl_header_t.target_pid");
_Static_assert(offsetof(ptl_header_t, match_bits) == 40, "ptl_header_t.match_bits");
_Static_assert(offsetof(ptl_header_t, offset) == 48, "ptl_header_t.offset");
_Static_assert(offsetof(ptl_header_t, hdr_data) == 56, "ptl_header_t.hdr_data");
_Static_assert(offsetof(ptl_header_t, msg_id) == 64, "ptl_header_t.msg_id");
_Static_assert(offsetof(ptl_header_t, user_hdr) == 72, "ptl_header_t.user_hdr");
_Static_assert(offsetof(ptl_header_t, flags) == 76, "ptl_header_t.flags");
_Static_assert(offsetof(ptl_header_t, atomic_op) == 80, "ptl_header_t.atomic_op");
_Static_assert(offsetof(ptl_header_t, datatype) == 84, "ptl_header_t.datatype");
_Static_assert(offsetof(ptl_header_t, packet) == 88, "ptl_header_t.packet");
_Static_assert(offsetof(ptl_header_t, packet_len) == 92, "ptl_header_t.packet_len");

/* What a payload handler is given: one packet. */
typedef struct {
	uint32_t base;
	uint32_t length;
	uint64_t offset;
	uint64_t msg_id;
	uint32_t source_nid;
	uint32_t source_pid;
	uint64_t hdr_data;
	uint64_t match_bits;
	uint64_t host_offset;
	uint64_t mlength;
} ptl_payload_t;
_Static_assert(sizeof(ptl_payload_t) == 64, "ptl_payload_t");
_Static_assert(offsetof(ptl_payload_t, base) == 0, "ptl_payload_t.base");
_Static_assert(offsetof(ptl_payload_t, length) == 4, "ptl_payload_t.length");
_Static_assert(offsetof(ptl_payload_t, offset) == 8, "ptl_payload_t.offset");
_Static_assert(offsetof(ptl_payload_t, msg_id) == 16, "ptl_payload_t.msg_id");
_Static_assert(offsetof(ptl_payload_t, source_nid) == 24, "ptl_payload_t.source_nid");
_Static_assert(offsetof(ptl_payload_t, source_pid) == 28, "ptl_payload_t.source_pid");
_Static_assert(offsetof(ptl_payload_t, hdr_data) == 32, "ptl_payload_t.hdr_data");
_Static_assert(offsetof(ptl_payload_t, match_bits) == 40, "ptl_payload_t.match_bits");
_Static_assert(offsetof(ptl_payload_t, host_offset) == 48, "ptl_payload_t.host_offset");
_Static_assert(offsetof(ptl_payload_t, mlength) == 56, "ptl_payload_t.mlength");

/* The packets to a node, for a rate law or a path choice. */
typedef struct {
	uint32_t event;
	uint32_t marked;
	uint64_t now;
	uint64_t rtt;
	uint64_t bytes;
	uint64_t in_flight;
	uint64_t base;
	uint64_t mtu;
	uint64_t mtu_time;
	uint64_t payload;
	uint32_t trims;
	uint32_t paths;
	uint64_t seed;
	uint64_t window;
	uint64_t pause;
	uint64_t timer;
	uint64_t path;
	uint64_t least_pause;
} ptl_flow_t;
_Static_assert(sizeof(ptl_flow_t) == 128, "ptl_flow_t");
_Static_assert(offsetof(ptl_flow_t, event) == 0, "ptl_flow_t.event");
_Static_assert(offsetof(ptl_flow_t, marked) == 4, "ptl_flow_t.marked");
_Static_assert(offsetof(ptl_flow_t, now) == 8, "ptl_flow_t.now");
_Static_assert(offsetof(ptl_flow_t, rtt) == 16, "ptl_flow_t.rtt");
_Static_assert(offsetof(ptl_flow_t, bytes) == 24, "ptl_flow_t.bytes");
_Static_assert(offsetof(ptl_flow_t, in_flight) == 32, "ptl_flow_t.in_flight");
_Static_assert(offsetof(ptl_flow_t, base) == 40, "ptl_flow_t.base");
_Static_assert(offsetof(ptl_flow_t, mtu) == 48, "ptl_flow_t.mtu");
_Static_assert(offsetof(ptl_flow_t, mtu_time) == 56, "ptl_flow_t.mtu_time");
_Static_assert(offsetof(ptl_flow_t, payload) == 64, "ptl_flow_t.payload");
_Static_assert(offsetof(ptl_flow_t, trims) == 72, "ptl_flow_t.trims");
_Static_assert(offsetof(ptl_flow_t, paths) == 76, "ptl_flow_t.paths");
_Static_assert(offsetof(ptl_flow_t, seed) == 80, "ptl_flow_t.seed");
_Static_assert(offsetof(ptl_flow_t, window) == 88, "ptl_flow_t.window");
_Static_assert(offsetof(ptl_flow_t, pause) == 96, "ptl_flow_t.pause");
_Static_assert(offsetof(ptl_flow_t, timer) == 104, "ptl_flow_t.timer");
_Static_assert(offsetof(ptl_flow_t, path) == 112, "ptl_flow_t.path");
_Static_assert(offsetof(ptl_flow_t, least_pause) == 120, "ptl_flow_t.least_pause");

/* An owner of handlers, for an arbiter. */
typedef struct {
	uint32_t number;
	uint32_t weight;
	uint32_t waiting;
	uint32_t handlers;
	uint32_t others;
	uint32_t hpus;
	uint64_t now;
	uint64_t had;
	uint64_t wanted;
	uint64_t key;
} ptl_tenant_t;
_Static_assert(sizeof(ptl_tenant_t) == 56, "ptl_tenant_t");
_Static_assert(offsetof(ptl_tenant_t, number) == 0, "ptl_tenant_t.number");
_Static_assert(offsetof(ptl_tenant_t, weight) == 4, "ptl_tenant_t.weight");
_Static_assert(offsetof(ptl_tenant_t, waiting) == 8, "ptl_tenant_t.waiting");
_Static_assert(offsetof(ptl_tenant_t, handlers) == 12, "ptl_tenant_t.handlers");
_Static_assert(offsetof(ptl_tenant_t, others) == 16, "ptl_tenant_t.others");
_Static_assert(offsetof(ptl_tenant_t, hpus) == 20, "ptl_tenant_t.hpus");
_Static_assert(offsetof(ptl_tenant_t, now) == 24, "ptl_tenant_t.now");
_Static_assert(offsetof(ptl_tenant_t, had) == 32, "ptl_tenant_t.had");
_Static_assert(offsetof(ptl_tenant_t, wanted) == 40, "ptl_tenant_t.wanted");
_Static_assert(offsetof(ptl_tenant_t, key) == 48, "ptl_tenant_t.key");

/* What a completion handler is given: the end of a message. */
typedef struct {
	uint64_t dropped_bytes;
	uint32_t flow_control;
	uint32_t failed;
	uint64_t msg_id;
	uint32_t source_nid;
	uint32_t source_pid;
	uint64_t hdr_data;
	uint64_t match_bits;
	uint64_t offset;
	uint64_t mlength;
	uint32_t packet; /* the last packet, if the entry's completion handler sees it */
	uint32_t packet_len;
} ptl_completion_t;
_Static_assert(sizeof(ptl_completion_t) == 72, "ptl_completion_t");
_Static_assert(offsetof(ptl_completion_t, dropped_bytes) == 0, "ptl_completion_t.dropped_bytes");
_Static_assert(offsetof(ptl_completion_t, flow_control) == 8, "ptl_completion_t.flow_control");
_Static_assert(offsetof(ptl_completion_t, failed) == 12, "ptl_completion_t.failed");
_Static_assert(offsetof(ptl_completion_t, msg_id) == 16, "ptl_completion_t.msg_id");
_Static_assert(offsetof(ptl_completion_t, source_nid) == 24, "ptl_completion_t.source_nid");
_Static_assert(offsetof(ptl_completion_t, source_pid) == 28, "ptl_completion_t.source_pid");
_Static_assert(offsetof(ptl_completion_t, hdr_data) == 32, "ptl_completion_t.hdr_data");
_Static_assert(offsetof(ptl_completion_t, match_bits) == 40, "ptl_completion_t.match_bits");
_Static_assert(offsetof(ptl_completion_t, offset) == 48, "ptl_completion_t.offset");
_Static_assert(offsetof(ptl_completion_t, mlength) == 56, "ptl_completion_t.mlength");
_Static_assert(offsetof(ptl_completion_t, packet) == 64, "ptl_completion_t.packet");
_Static_assert(offsetof(ptl_completion_t, packet_len) == 68, "ptl_completion_t.packet_len");

/* A put, get, atomic or timer. */
typedef struct {
	uint32_t local;
	uint32_t space;
	uint64_t offset;
	uint64_t length;
	uint32_t target_nid;
	uint32_t target_pid;
	uint32_t pt_index;
	uint32_t ack_req;
	uint64_t match_bits;
	uint64_t remote_offset;
	uint64_t hdr_data;
	uint64_t user_ptr;
	uint32_t md;
	uint32_t options;
	uint32_t atomic_op;
	uint32_t datatype;
	uint32_t operand;
	uint32_t fetch;
	uint64_t fetch_offset;
	uint32_t user_hdr;
	uint32_t user_hdr_len;
} ptl_op_t;
_Static_assert(sizeof(ptl_op_t) == 112, "ptl_op_t");
_Static_assert(offsetof(ptl_op_t, local) == 0, "ptl_op_t.local");
_Static_assert(offsetof(ptl_op_t, space) == 4, "ptl_op_t.space");
_Static_assert(offsetof(ptl_op_t, offset) == 8, "ptl_op_t.offset");
_Static_assert(offsetof(ptl_op_t, length) == 16, "ptl_op_t.length");
_Static_assert(offsetof(ptl_op_t, target_nid) == 24, "ptl_op_t.target_nid");
_Static_assert(offsetof(ptl_op_t, target_pid) == 28, "ptl_op_t.target_pid");
_Static_assert(offsetof(ptl_op_t, pt_index) == 32, "ptl_op_t.pt_index");
_Static_assert(offsetof(ptl_op_t, ack_req) == 36, "ptl_op_t.ack_req");
_Static_assert(offsetof(ptl_op_t, match_bits) == 40, "ptl_op_t.match_bits");
_Static_assert(offsetof(ptl_op_t, remote_offset) == 48, "ptl_op_t.remote_offset");
_Static_assert(offsetof(ptl_op_t, hdr_data) == 56, "ptl_op_t.hdr_data");
_Static_assert(offsetof(ptl_op_t, user_ptr) == 64, "ptl_op_t.user_ptr");
_Static_assert(offsetof(ptl_op_t, md) == 72, "ptl_op_t.md");
_Static_assert(offsetof(ptl_op_t, options) == 76, "ptl_op_t.options");
_Static_assert(offsetof(ptl_op_t, atomic_op) == 80, "ptl_op_t.atomic_op");
_Static_assert(offsetof(ptl_op_t, datatype) == 84, "ptl_op_t.datatype");
_Static_assert(offsetof(ptl_op_t, operand) == 88, "ptl_op_t.operand");
_Static_assert(offsetof(ptl_op_t, fetch) == 92, "ptl_op_t.fetch");
_Static_assert(offsetof(ptl_op_t, fetch_offset) == 96, "ptl_op_t.fetch_offset");
_Static_assert(offsetof(ptl_op_t, user_hdr) == 104, "ptl_op_t.user_hdr");
_Static_assert(offsetof(ptl_op_t, user_hdr_len) == 108, "ptl_op_t.user_hdr_len");

/* Handlers take turns where they suspend. The functions of other toolchains (p4spin.h, pspin_compat.h) have no
 * parameter for the handler that calls them: there spin_running finds its record, and every import that suspends
 * sets it again. It is a global of the module and not memory, which handlers would share. */
#if defined(SPIN_HEADER) || defined(SPIN_PAYLOAD) || defined(SPIN_COMPLETION)
#define SPIN_TAKES_TURNS
#endif
#if defined(SPIN_TAKES_TURNS) && defined(__wasm__)
__asm__(".globaltype spin_record, i32\n\t.weak spin_record\n\t.section .data.spin_record,\"\",@\nspin_record:\n");
static inline void *spin_running(void)
{
	void *record;
	__asm__ volatile("global.get spin_record\n\tlocal.set %0" : "=r"(record));
	return record;
}

static inline void spin_runs(void *record)
{
	__asm__ volatile("local.get %0\n\tglobal.set spin_record" ::"r"(record));
}

#define SPIN_SUSPENDS(type, name, parameters, arguments)      \
	SPIN_IMPORT(name) type spin_import_##name parameters; \
	static inline type spin_##name parameters             \
	{                                                     \
		void *record = spin_running();                \
		type result = spin_import_##name arguments;   \
		spin_runs(record);                            \
		return result;                                \
	}
#define SPIN_WAITS(name, parameters, arguments)               \
	SPIN_IMPORT(name) void spin_import_##name parameters; \
	static inline void spin_##name parameters             \
	{                                                     \
		void *record = spin_running();                \
		spin_import_##name arguments;                 \
		spin_runs(record);                            \
	}
#else
#define SPIN_SUSPENDS(type, name, parameters, arguments) SPIN_IMPORT(name) type spin_##name parameters;
#define SPIN_WAITS(name, parameters, arguments) SPIN_IMPORT(name) void spin_##name parameters;
#endif

/* The imports, as the device offers them. Pointers are 32 bits wide. */
SPIN_SUSPENDS(int32_t, dma_to_host, (uint32_t space, uint64_t offset, const void *local, uint32_t len), (space, offset, local, len))
SPIN_SUSPENDS(int32_t, dma_from_host, (uint32_t space, uint64_t offset, void *local, uint32_t len), (space, offset, local, len))
SPIN_IMPORT(dma_to_host_nb) int32_t spin_dma_to_host_nb(uint32_t space, uint64_t offset, const void *local, uint32_t len);
SPIN_IMPORT(dma_from_host_nb) int32_t spin_dma_from_host_nb(uint32_t space, uint64_t offset, void *local, uint32_t len);
SPIN_SUSPENDS(int32_t, dma_cas, (uint32_t space, uint64_t offset, uint64_t compare, uint64_t swap, uint64_t *found), (space, offset, compare, swap, found))
SPIN_IMPORT(dma_cas_nb) int32_t spin_dma_cas_nb(uint32_t space, uint64_t offset, uint64_t compare, uint64_t swap, uint64_t *found);
SPIN_SUSPENDS(int32_t, dma_fadd, (uint32_t space, uint64_t offset, uint64_t inc, uint64_t *found), (space, offset, inc, found))
SPIN_IMPORT(dma_fadd_nb) int32_t spin_dma_fadd_nb(uint32_t space, uint64_t offset, uint64_t inc, uint64_t *found);
SPIN_SUSPENDS(int32_t, dma_fadd_typed, (uint32_t space, uint64_t offset, uint32_t datatype, uint64_t inc, void *found), (space, offset, datatype, inc, found))
SPIN_IMPORT(dma_fadd_typed_nb) int32_t spin_dma_fadd_typed_nb(uint32_t space, uint64_t offset, uint32_t datatype, uint64_t inc, void *found);
SPIN_SUSPENDS(int32_t, dma_test, (int32_t handle), (handle))
SPIN_SUSPENDS(int32_t, dma_wait, (int32_t handle), (handle))
SPIN_SUSPENDS(int32_t, cas, (uint64_t *addr, uint64_t compare, uint64_t swap), (addr, compare, swap))
SPIN_SUSPENDS(int64_t, fadd, (uint64_t *addr, uint64_t inc), (addr, inc))
SPIN_WAITS(yield, (void), ())
SPIN_IMPORT(put_from_host) int32_t spin_put_from_host(const ptl_op_t *op);
SPIN_SUSPENDS(int32_t, put_from_device, (const ptl_op_t *op), (op))
SPIN_IMPORT(get_from_host) int32_t spin_get_from_host(const ptl_op_t *op);
SPIN_SUSPENDS(int32_t, get_from_device, (const ptl_op_t *op), (op))
SPIN_IMPORT(atomic_from_host) int32_t spin_atomic_from_host(const ptl_op_t *op);
SPIN_SUSPENDS(int32_t, atomic_from_device, (const ptl_op_t *op), (op))
SPIN_SUSPENDS(int32_t, ct_get, (uint32_t ct, ptl_ct_event_t *out), (ct, out))
SPIN_IMPORT(ct_set) int32_t spin_ct_set(uint32_t ct, uint64_t success, uint64_t failure);
SPIN_IMPORT(ct_inc) int32_t spin_ct_inc(uint32_t ct, uint64_t success, uint64_t failure);
SPIN_IMPORT(ack) int32_t spin_ack(int32_t status);
SPIN_IMPORT(timer) int32_t spin_timer(uint64_t delay_ns, const ptl_op_t *op);
SPIN_IMPORT(now) int64_t spin_now(void);
SPIN_IMPORT(timer_at) int32_t spin_timer_at(uint64_t at_ps, uint64_t period_ps, const ptl_op_t *op);
SPIN_IMPORT(expiries) int64_t spin_expiries(void);
SPIN_IMPORT(to_self) int32_t spin_to_self(const ptl_op_t *op);
SPIN_IMPORT(timer_cancel) int32_t spin_timer_cancel(int32_t handle);
SPIN_SUSPENDS(int32_t, atomic32, (uint32_t operation, volatile uint32_t *addr, uint32_t operand, uint32_t compare), (operation, addr, operand, compare))
SPIN_SUSPENDS(int32_t, dma_to_host_posted, (uint32_t space, uint64_t offset, const void *local, uint32_t len), (space, offset, local, len))
SPIN_SUSPENDS(int32_t, host_write, (uint32_t space, uint64_t offset, uint64_t value), (space, offset, value))
SPIN_IMPORT(host_write_nb) int32_t spin_host_write_nb(uint32_t space, uint64_t offset, uint64_t value);
SPIN_WAITS(wait32, (const volatile uint32_t *addr, uint32_t expected), (addr, expected))
SPIN_IMPORT(my_cluster) int32_t spin_my_cluster(void);
SPIN_IMPORT(runtime_begin) void spin_runtime_begin(void);
SPIN_IMPORT(runtime_end) void spin_runtime_end(void);
SPIN_IMPORT(num_clusters) int32_t spin_num_clusters(void);
SPIN_IMPORT(flow_id) int32_t spin_flow_id(void);
SPIN_IMPORT(scratchpad) int64_t spin_scratchpad(uint32_t cluster);
SPIN_IMPORT(message_memory) int64_t spin_message_memory(void);
SPIN_IMPORT(num_hpus) int32_t spin_num_hpus(void);
SPIN_IMPORT(my_hpu) int32_t spin_my_hpu(void);
SPIN_IMPORT(cycles) int64_t spin_cycles(void);
SPIN_IMPORT(log) void spin_log(const char *addr, uint32_t len);

#define PTL_NUM_HPUS spin_num_hpus()
#define PTL_MY_HPU spin_my_hpu()

/* Memories of clusters and messages: what spin_scratchpad and spin_message_memory return has the address below and the bytes above. */
static inline void *spin_place(int64_t memory)
{
	return (void *)(uintptr_t)(uint32_t)memory;
}

static inline uint32_t spin_place_bytes(int64_t memory)
{
	return (uint32_t)((uint64_t)memory >> 32);
}

/* DMA between HPU memory and host memory; options is PTL_ME_HOST_MEM or PTL_HANDLER_HOST_MEM, and perhaps
 * SPIN_TELL_FAULTS. */
static inline int PtlHandlerDMAToHostB(const void *local, ptl_size_t offset, uint32_t len, uint32_t options)
{
	return spin_dma_to_host(options, offset, local, len);
}

static inline int PtlHandlerDMAFromHostB(ptl_size_t offset, void *local, uint32_t len, uint32_t options)
{
	return spin_dma_from_host(options, offset, local, len);
}

/* spin_started stores the handle of an operation that started, and returns PTL_OK or why it did not. */
static inline int spin_started(int32_t result, ptl_dma_h *handle)
{
	*handle = result;
	return result < 0 ? result : PTL_OK;
}

static inline int PtlHandlerDMAToHostNB(const void *local, ptl_size_t offset, uint32_t len, uint32_t options, ptl_dma_h *handle)
{
	return spin_started(spin_dma_to_host_nb(options, offset, local, len), handle);
}

static inline int PtlHandlerDMAFromHostNB(ptl_size_t offset, void *local, uint32_t len, uint32_t options, ptl_dma_h *handle)
{
	return spin_started(spin_dma_from_host_nb(options, offset, local, len), handle);
}

/* Posted writes: nobody waits for them, but the message's completion handler begins when they have landed. The bytes are taken
 * at the call. The second writes 8 bytes that the command carries, to an address that is a multiple of 8. */
static inline int PtlHandlerDMAToHostPosted(const void *local, ptl_size_t offset, uint32_t len, uint32_t options)
{
	return spin_dma_to_host_posted(options, offset, local, len);
}

static inline int PtlHandlerHostWrite(uint64_t value, ptl_size_t offset, uint32_t options)
{
	return spin_host_write(options, offset, value);
}

/* Atomics on 8 aligned bytes of host memory. *cmpval is compared and then holds the value found; 1: swapped. */
static inline int PtlHandlerDMACASB(ptl_size_t offset, uint64_t *cmpval, uint64_t swapval, uint32_t options)
{
	return spin_dma_cas(options, offset, *cmpval, swapval, cmpval);
}

static inline int PtlHandlerDMACASNB(ptl_size_t offset, uint64_t *cmpval, uint64_t swapval, uint32_t options, ptl_dma_h *handle)
{
	return spin_started(spin_dma_cas_nb(options, offset, *cmpval, swapval, cmpval), handle);
}

/* type: PTL_INT8_T to PTL_DOUBLE; before has as many bytes as a number of it. */
static inline int PtlHandlerDMAFetchAddB(ptl_size_t offset, uint64_t inc, void *before, uint32_t type, uint32_t options)
{
	return spin_dma_fadd_typed(options, offset, type, inc, before);
}

static inline int PtlHandlerDMAFetchAddNB(ptl_size_t offset, uint64_t inc, void *before, uint32_t type, uint32_t options, ptl_dma_h *handle)
{
	return spin_started(spin_dma_fadd_typed_nb(options, offset, type, inc, before), handle);
}

/* 1: done, the handle is free; 0: not yet; negative: how the operation failed. */
static inline int PtlHandlerDMATest(ptl_dma_h handle)
{
	return handle < 0 ? handle : spin_dma_test(handle);
}

static inline int PtlHandlerDMAWait(ptl_dma_h handle)
{
	return handle < 0 ? handle : spin_dma_wait(handle);
}

/* Atomics on 8 aligned bytes of HPU memory. 1: swapped. */
static inline int PtlHandlerCAS(uint64_t *value, uint64_t cmpval, uint64_t swapval)
{
	return spin_cas(value, cmpval, swapval);
}

static inline uint64_t PtlHandlerFAdd(uint64_t *value, uint64_t inc)
{
	return (uint64_t)spin_fadd(value, inc);
}

static inline void PtlHandlerYield(void)
{
	spin_yield();
}

/* spin_op starts an operation record: what all messages have. */
static inline ptl_op_t spin_op(ptl_size_t length, ptl_ack_req_t ack_req, ptl_process_t target, ptl_pt_index_t pt_index,
			       ptl_match_bits_t match_bits, ptl_size_t remote_offset, uint64_t user_ptr, ptl_hdr_data_t hdr_data)
{
	ptl_op_t op = {0};
	op.length = length;
	op.ack_req = ack_req;
	op.target_nid = target.nid;
	op.target_pid = target.pid;
	op.pt_index = pt_index;
	op.match_bits = match_bits;
	op.remote_offset = remote_offset;
	op.user_ptr = user_ptr;
	op.hdr_data = hdr_data;
	return op;
}

/* Messages. For a space, memory descriptor, user header or option of its own fill a ptl_op_t and
 * call the spin_ function. Host offsets are in PTL_ME_HOST_MEM. */
static inline int PtlHandlerPutFromHost(ptl_size_t offset, ptl_size_t length, ptl_ack_req_t ack_req, ptl_process_t target,
					ptl_pt_index_t pt_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset,
					uint64_t user_ptr, ptl_hdr_data_t hdr_data)
{
	ptl_op_t op = spin_op(length, ack_req, target, pt_index, match_bits, remote_offset, user_ptr, hdr_data);
	op.offset = offset;
	return spin_put_from_host(&op);
}

static inline int PtlHandlerPutFromDevice(const void *local, ptl_size_t length, ptl_ack_req_t ack_req, ptl_process_t target,
					  ptl_pt_index_t pt_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset,
					  uint64_t user_ptr, ptl_hdr_data_t hdr_data)
{
	ptl_op_t op = spin_op(length, ack_req, target, pt_index, match_bits, remote_offset, user_ptr, hdr_data);
	op.local = (uint32_t)(uintptr_t)local;
	return spin_put_from_device(&op);
}

static inline int PtlHandlerGetFromHost(ptl_size_t offset, ptl_size_t length, ptl_process_t target, ptl_pt_index_t pt_index,
					ptl_match_bits_t match_bits, ptl_size_t remote_offset, uint64_t user_ptr)
{
	ptl_op_t op = spin_op(length, PTL_NO_ACK_REQ, target, pt_index, match_bits, remote_offset, user_ptr, 0);
	op.offset = offset;
	return spin_get_from_host(&op);
}

static inline int PtlHandlerGetFromDevice(void *local, ptl_size_t length, ptl_process_t target, ptl_pt_index_t pt_index,
					  ptl_match_bits_t match_bits, ptl_size_t remote_offset, uint64_t user_ptr)
{
	ptl_op_t op = spin_op(length, PTL_NO_ACK_REQ, target, pt_index, match_bits, remote_offset, user_ptr, 0);
	op.local = (uint32_t)(uintptr_t)local;
	return spin_get_from_device(&op);
}

static inline int PtlHandlerAtomicFromHost(ptl_size_t offset, ptl_size_t length, ptl_ack_req_t ack_req, ptl_process_t target,
					   ptl_pt_index_t pt_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset,
					   uint64_t user_ptr, ptl_hdr_data_t hdr_data, uint32_t operation, uint32_t datatype)
{
	ptl_op_t op = spin_op(length, ack_req, target, pt_index, match_bits, remote_offset, user_ptr, hdr_data);
	op.offset = offset;
	op.atomic_op = operation;
	op.datatype = datatype;
	op.fetch_offset = UINT64_MAX; /* fetch nothing */
	return spin_atomic_from_host(&op);
}

static inline int PtlHandlerAtomicFromDevice(const void *local, ptl_size_t length, ptl_ack_req_t ack_req, ptl_process_t target,
					     ptl_pt_index_t pt_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset,
					     uint64_t user_ptr, ptl_hdr_data_t hdr_data, uint32_t operation, uint32_t datatype)
{
	ptl_op_t op = spin_op(length, ack_req, target, pt_index, match_bits, remote_offset, user_ptr, hdr_data);
	op.local = (uint32_t)(uintptr_t)local;
	op.atomic_op = operation;
	op.datatype = datatype;
	return spin_atomic_from_device(&op);
}

/* Time, in picoseconds. A timer's message comes at a time of PtlHandlerNow and, with a period, at each period after it;
 * PtlHandlerExpiries says how many of them it stands for. The result, if not negative, is for spin_timer_cancel. */
static inline uint64_t PtlHandlerNow(void)
{
	return (uint64_t)spin_now();
}

static inline int PtlHandlerTimerAt(uint64_t at, uint64_t period, const void *local, ptl_size_t length, ptl_pt_index_t pt_index,
				    ptl_match_bits_t match_bits, ptl_hdr_data_t hdr_data)
{
	ptl_process_t self = {0};
	ptl_op_t op = spin_op(length, PTL_NO_ACK_REQ, self, pt_index, match_bits, 0, 0, hdr_data);
	op.local = (uint32_t)(uintptr_t)local;
	return spin_timer_at(at, period, &op);
}

static inline uint64_t PtlHandlerExpiries(void)
{
	return (uint64_t)spin_expiries();
}

/* Counters. */
static inline int PtlHandlerCTGet(ptl_handle_ct_t ct, ptl_ct_event_t *event)
{
	return spin_ct_get(ct, event);
}

static inline int PtlHandlerCTSet(ptl_handle_ct_t ct, ptl_ct_event_t event)
{
	return spin_ct_set(ct, event.success, event.failure);
}

static inline int PtlHandlerCTInc(ptl_handle_ct_t ct, ptl_ct_event_t increment)
{
	return spin_ct_inc(ct, increment.success, increment.failure);
}

#ifdef __cplusplus
}
#endif

#endif
