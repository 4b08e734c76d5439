/* p4spin.h: handlers written for the toolchain of the sPIN paper (LogGOPSim with gem5): the names and argument lists of its smp.h and
 * portals.h, over spin.h. docs/porting.md has the table of names and says what differs.
 *
 * A handler there is a function void f(void *message, void *state). Say which of them handle messages:
 *     spinsim handler build -D SPIN_HEADER=f -D SPIN_PAYLOAD=g -D SPIN_COMPLETION=h FOLDER
 */
#ifndef P4SPIN_H
#define P4SPIN_H

#include <spin.h>

#if !defined(SPIN_HEADER) && !defined(SPIN_PAYLOAD) && !defined(SPIN_COMPLETION)
#error "say which functions handle messages: -D SPIN_HEADER=f, -D SPIN_PAYLOAD=f, -D SPIN_COMPLETION=f"
#endif

/* Bytes of a packet, which the handlers size their buffers by: give the MTU of the device if it is another. */
#ifndef PACKET_SIZE
#define PACKET_SIZE 4096
#endif

/* The portal table index of what handlers send: their argument lists have none. */
#ifndef P4SPIN_PT_INDEX
#define P4SPIN_PT_INDEX 0
#endif

/* Return codes: other numbers than those of spin.h. p4spin_code translates them. */
enum {
	P4SPIN_SUCCESS, P4SPIN_PROCEED, P4SPIN_PROCESS_DATA, P4SPIN_PROCESS_DATA_PENDING, P4SPIN_DROP, P4SPIN_DROP_PENDING,
	P4SPIN_SUCCESS_PENDING,
};

/* Their host memories have other numbers, too. */
enum { P4SPIN_ME_HOST_MEM = 1, P4SPIN_HANDLER_HOST_MEM = 2 };

typedef struct {
	uint64_t arg[4];
} ptl_user_header_t;

typedef struct {
	uint32_t type; /* as in spin.h */
	uint32_t length;
	uint32_t target_id;
	uint32_t source_id;
	uint32_t match_bits;
	uint32_t offset;
	uint32_t hdr_data;
	ptl_user_header_t user_hdr;
} p4spin_header_t;

/* The handlers copy this record, so the data is pointed at; there it lies behind the record. */
typedef struct {
	uint32_t length;
	uint32_t offset;
	uint8_t *base;
} p4spin_payload_t;

/* What a handler that is running has said and been given: spin_running of spin.h points to it. */
typedef struct {
	uint32_t code;
	uint8_t *packet; /* what NULL stands for as the source of data: the packet's payload, or the user header, or zeros */
	uint32_t bytes;  /* of it */
} p4spin_call_t;

__attribute__((weak)) uint8_t p4spin_unread[PACKET_SIZE]; /* what is read to NULL, which nobody looks at */
__attribute__((weak)) uint8_t p4spin_zeros[PACKET_SIZE];  /* what is sent from NULL by a handler that has seen no data */

static inline p4spin_call_t *p4spin_running(void) { return (p4spin_call_t *)spin_running(); }

/* Header handlers that return SUCCESS go on with the payload handlers. */
static inline int32_t p4spin_header_code(uint32_t code)
{
	switch (code) {
	case P4SPIN_SUCCESS:
	case P4SPIN_PROCESS_DATA:
		return PTL_PROCESS_DATA;
	case P4SPIN_SUCCESS_PENDING:
	case P4SPIN_PROCESS_DATA_PENDING:
		return PTL_PROCESS_DATA_PENDING;
	case P4SPIN_PROCEED:
		return PTL_PROCEED;
	case P4SPIN_DROP:
		return PTL_DROP;
	case P4SPIN_DROP_PENDING:
		return PTL_DROP_PENDING;
	}
	return PTL_FAIL;
}

static inline int32_t p4spin_payload_code(uint32_t code)
{
	return code == P4SPIN_SUCCESS ? PTL_SUCCESS : code == P4SPIN_DROP ? PTL_DROP : PTL_FAIL;
}

static inline int32_t p4spin_completion_code(uint32_t code)
{
	return code == P4SPIN_SUCCESS ? PTL_SUCCESS : code == P4SPIN_SUCCESS_PENDING ? PTL_SUCCESS_PENDING : PTL_FAIL;
}

#ifdef SPIN_HEADER
void SPIN_HEADER(void *message, void *state);

__attribute__((weak, export_name("header"))) int32_t p4spin_header(const ptl_header_t *h, void *state)
{
	p4spin_header_t m = {h->type, (uint32_t)h->length, h->target_nid, h->source_nid, (uint32_t)h->match_bits, (uint32_t)h->offset,
			     (uint32_t)h->hdr_data, {{0}}};
	uint32_t user = h->user_hdr_len < sizeof m.user_hdr ? h->user_hdr_len : sizeof m.user_hdr;
	p4spin_call_t c = {P4SPIN_SUCCESS, user ? (uint8_t *)(uintptr_t)h->user_hdr : p4spin_zeros, user ? h->user_hdr_len : PACKET_SIZE};
	__builtin_memcpy(&m.user_hdr, c.packet, user);
	spin_runs(&c);
	SPIN_HEADER(&m, state);
	return p4spin_header_code(c.code);
}
#endif

#ifdef SPIN_PAYLOAD
void SPIN_PAYLOAD(void *message, void *state);

__attribute__((weak, export_name("payload"))) int32_t p4spin_payload(const ptl_payload_t *p, void *state)
{
	p4spin_payload_t m = {p->length, (uint32_t)p->offset, (uint8_t *)(uintptr_t)p->base};
	p4spin_call_t c = {P4SPIN_SUCCESS, m.base, p->length};
	spin_runs(&c);
	SPIN_PAYLOAD(&m, state);
	return p4spin_payload_code(c.code);
}
#endif

#ifdef SPIN_COMPLETION
void SPIN_COMPLETION(void *message, void *state);

__attribute__((weak, export_name("completion"))) int32_t p4spin_completion(const ptl_completion_t *e, void *state)
{
	p4spin_payload_t m = {0, (uint32_t)e->mlength, e->packet ? (uint8_t *)(uintptr_t)e->packet : p4spin_zeros};
	p4spin_call_t c = {P4SPIN_SUCCESS, m.base, e->packet ? e->packet_len : PACKET_SIZE};
	spin_runs(&c);
	SPIN_COMPLETION(&m, state);
	return p4spin_completion_code(c.code);
}
#endif

/* p4spin_space translates a host memory; one that does not exist is DENIED. */
static inline uint32_t p4spin_space(unsigned int options)
{
	return options == P4SPIN_ME_HOST_MEM ? PTL_ME_HOST_MEM : options == P4SPIN_HANDLER_HOST_MEM ? PTL_HANDLER_HOST_MEM : 0xff;
}

/* More than what NULL stands for would be other memory, such as an earlier message: the device finds none at
 * this address. */
#define P4SPIN_BEYOND ((void *)UINTPTR_MAX)

static inline const void *p4spin_source(const void *local, uint32_t len)
{
	p4spin_call_t *c = p4spin_running();
	return local ? local : len > c->bytes ? P4SPIN_BEYOND : c->packet;
}

static inline void *p4spin_destination(void *local, uint32_t len)
{
	return local ? local : len > PACKET_SIZE ? P4SPIN_BEYOND : p4spin_unread;
}

static inline int p4spin_dma_started(int32_t result, uint64_t *handle)
{
	*handle = result < 0 ? 0 : (uint64_t)result + 1; /* 0: has ended */
	return result < 0 ? result : PTL_OK;
}

static inline int p4spin_DMAToHostNB(const void *local, uint32_t offset, uint32_t len, unsigned int options, uint64_t *handle)
{
	return p4spin_dma_started(spin_dma_to_host_nb(p4spin_space(options), offset, p4spin_source(local, len), len), handle);
}

static inline int p4spin_DMAToHostB(const void *local, uint32_t offset, uint32_t len, unsigned int options)
{
	return spin_dma_to_host(p4spin_space(options), offset, p4spin_source(local, len), len);
}

static inline int p4spin_DMAFromHostNB(uint32_t offset, void *local, uint32_t len, unsigned int options, uint64_t *handle)
{
	return p4spin_dma_started(spin_dma_from_host_nb(p4spin_space(options), offset, p4spin_destination(local, len), len), handle);
}

static inline int p4spin_DMAFromHostB(uint32_t offset, void *local, uint32_t len, unsigned int options)
{
	return spin_dma_from_host(p4spin_space(options), offset, p4spin_destination(local, len), len);
}

static inline int p4spin_DMATest(uint64_t handle)
{
	return handle == 0 ? 1 : spin_dma_test((int32_t)(handle - 1));
}

static inline int p4spin_DMAWait(uint64_t handle)
{
	return handle == 0 ? PTL_OK : spin_dma_wait((int32_t)(handle - 1));
}

static inline int p4spin_DMACASB(uint32_t offset, uint64_t *cmpval, uint64_t swapval, unsigned int options)
{
	return spin_dma_cas(p4spin_space(options), offset, *cmpval, swapval, cmpval);
}

static inline int p4spin_DMACASNB(uint32_t offset, uint64_t *cmpval, uint64_t swapval, unsigned int options, uint64_t *handle)
{
	return p4spin_dma_started(spin_dma_cas_nb(p4spin_space(options), offset, *cmpval, swapval, cmpval), handle);
}

/* Converts what is added to the type: for example, 2.0 and 2 are the same PTL_DOUBLE. A number that the type
 * does not hold wraps, as in C. */
static inline uint64_t p4spin_real(uint32_t type, double value)
{
	union {
		float f;
		double d;
		uint64_t bits;
	} number = {.bits = 0};
	if (type == PTL_FLOAT)
		number.f = (float)value;
	else if (type == PTL_DOUBLE)
		number.d = value;
	else
		number.bits = (uint64_t)(int64_t)value;
	return number.bits;
}

static inline uint64_t p4spin_whole(uint32_t type, uint64_t value)
{
	return type == PTL_FLOAT || type == PTL_DOUBLE ? p4spin_real(type, (double)(int64_t)value) : value;
}

/* before has as many bytes as a number of the type: PTL_INT, theirs, or one of spin.h of at most 64 bits. */
static inline int p4spin_DMAFetchAddB(uint32_t offset, uint64_t inc, void *before, uint32_t type, unsigned int options)
{
	return spin_dma_fadd_typed(p4spin_space(options), offset, type, inc, before);
}

static inline int p4spin_DMAFetchAddNB(uint32_t offset, uint64_t inc, void *before, uint32_t type, unsigned int options, uint64_t *handle)
{
	return p4spin_dma_started(spin_dma_fadd_typed_nb(p4spin_space(options), offset, type, inc, before), handle);
}

static inline int p4spin_CAS(uint64_t *value, uint64_t cmpval, uint64_t swapval)
{
	return spin_cas(value, cmpval, swapval);
}

static inline int p4spin_FAdd(uint64_t *value, uint64_t *before, uint64_t inc)
{
	*before = (uint64_t)spin_fadd(value, inc);
	return PTL_OK;
}

static inline int p4spin_Yield(void)
{
	spin_yield();
	return PTL_OK;
}

static inline ptl_op_t p4spin_op(uint32_t len, uint32_t ack_req, uint32_t target, uint32_t match_bits, uint32_t remote_offset,
				 void *user_ptr, uint32_t hdr_data)
{
	ptl_process_t to = {target, 0};
	return spin_op(len, ack_req, to, P4SPIN_PT_INDEX, match_bits, remote_offset, (uintptr_t)user_ptr, hdr_data);
}

/* The counter ct, of the initiator's events, is left out: PTL_LOCAL_ME_CT is the only one they name. */
static inline int p4spin_PutFromHost(uint32_t offset, uint32_t len, uint32_t ct, uint32_t ack_req, uint32_t target, uint32_t match_bits,
				     uint32_t remote_offset, void *user_ptr, uint32_t hdr_data)
{
	ptl_op_t op = p4spin_op(len, ack_req, target, match_bits, remote_offset, user_ptr, hdr_data);
	(void)ct;
	op.offset = offset;
	return spin_put_from_host(&op);
}

static inline int p4spin_PutFromDevice(const void *local, uint32_t len, uint32_t ct, uint32_t ack_req, uint32_t target,
				       uint32_t match_bits, uint32_t remote_offset, void *user_ptr, uint32_t hdr_data)
{
	ptl_op_t op = p4spin_op(len, ack_req, target, match_bits, remote_offset, user_ptr, hdr_data);
	(void)ct;
	op.local = (uint32_t)(uintptr_t)p4spin_source(local, len);
	return spin_put_from_device(&op);
}

static inline int p4spin_GetToHost(uint32_t offset, uint32_t len, uint32_t ct, uint32_t ack_req, uint32_t target, uint32_t match_bits,
				   uint32_t remote_offset, void *user_ptr, uint32_t hdr_data)
{
	ptl_op_t op = p4spin_op(len, PTL_NO_ACK_REQ, target, match_bits, remote_offset, user_ptr, hdr_data);
	(void)ct;
	(void)ack_req;
	op.offset = offset;
	return spin_get_from_host(&op);
}

static inline int p4spin_GetToDevice(void *local, uint32_t len, uint32_t ct, uint32_t ack_req, uint32_t target, uint32_t match_bits,
				     uint32_t remote_offset, void *user_ptr, uint32_t hdr_data)
{
	ptl_op_t op = p4spin_op(len, PTL_NO_ACK_REQ, target, match_bits, remote_offset, user_ptr, hdr_data);
	(void)ct;
	(void)ack_req;
	op.local = (uint32_t)(uintptr_t)p4spin_destination(local, len);
	return spin_get_from_device(&op);
}

/* Atomics: the operation and the type stand last, as in PtlAtomic. */
static inline int p4spin_AtomicFromHost(uint32_t offset, uint32_t len, uint32_t ct, uint32_t ack_req, uint32_t target, uint32_t match_bits,
					uint32_t remote_offset, void *user_ptr, uint32_t hdr_data, uint32_t operation, uint32_t type)
{
	ptl_op_t op = p4spin_op(len, ack_req, target, match_bits, remote_offset, user_ptr, hdr_data);
	(void)ct;
	op.offset = offset;
	op.atomic_op = operation;
	op.datatype = type;
	op.fetch_offset = UINT64_MAX; /* fetch nothing */
	return spin_atomic_from_host(&op);
}

static inline int p4spin_AtomicFromDevice(const void *local, uint32_t len, uint32_t ct, uint32_t ack_req, uint32_t target,
					  uint32_t match_bits, uint32_t remote_offset, void *user_ptr, uint32_t hdr_data,
					  uint32_t operation, uint32_t type)
{
	ptl_op_t op = p4spin_op(len, ack_req, target, match_bits, remote_offset, user_ptr, hdr_data);
	(void)ct;
	op.local = (uint32_t)(uintptr_t)p4spin_source(local, len);
	op.atomic_op = operation;
	op.datatype = type;
	return spin_atomic_from_device(&op);
}

/* Counters: with both numbers of one, or with its successes alone. */
static inline int p4spin_CTGetEvent(uint32_t ct, ptl_ct_event_t *event)
{
	return spin_ct_get(ct, event);
}

static inline int p4spin_CTGetCount64(uint32_t ct, uint64_t *success)
{
	ptl_ct_event_t event;
	int r = p4spin_CTGetEvent(ct, &event);
	*success = r == PTL_OK ? event.success : *success;
	return r;
}

static inline int p4spin_CTGetCount(uint32_t ct, uint32_t *success)
{
	uint64_t now = *success;
	int r = p4spin_CTGetCount64(ct, &now);
	if (now >> 32)
		return SPIN_INVALID; /* it has no room for the count */
	*success = (uint32_t)now;
	return r;
}

static inline int p4spin_CTSetEvent(uint32_t ct, ptl_ct_event_t event) { return spin_ct_set(ct, event.success, event.failure); }
static inline int p4spin_CTSetCount(uint32_t ct, uint64_t success)
{
	ptl_ct_event_t now;
	int r = spin_ct_get(ct, &now);
	return r == PTL_OK ? spin_ct_set(ct, success, now.failure) : r;
}

static inline int p4spin_CTIncEvent(uint32_t ct, ptl_ct_event_t by) { return spin_ct_inc(ct, by.success, by.failure); }
static inline int p4spin_CTIncCount(uint32_t ct, uint64_t by) { return spin_ct_inc(ct, by, 0); }

/* PtlReturn says what the handler returns; it does not end it. */
static inline void PtlReturn(uint32_t code)
{
	p4spin_running()->code = code;
}

/* Their program is a loop on the simulated core, which main starts. Here the device calls the handlers. */
typedef void (*handler_t)(void *, void *);
static inline void init(void) {}
static inline void set_handlers(handler_t *handlers) { (void)handlers; }
static inline int libmain(void) { return 0; }

/* From here on the names are theirs. */
#define SUCCESS P4SPIN_SUCCESS
#define PROCEED P4SPIN_PROCEED
#define PROCESS_DATA P4SPIN_PROCESS_DATA
#define PROCESS_DATA_PENDING P4SPIN_PROCESS_DATA_PENDING
#define DROP P4SPIN_DROP
#define DROP_PENDING P4SPIN_DROP_PENDING
#define SUCCESS_PENDING P4SPIN_SUCCESS_PENDING
#define PTL_ME_HOST_MEM P4SPIN_ME_HOST_MEM
#define PTL_HANDLER_HOST_MEM P4SPIN_HANDLER_HOST_MEM
#define PTL_LOCAL_ME_CT 1
#define PTL_INT PTL_INT32_T
#define ptl_header_t p4spin_header_t
#define ptl_payload_t p4spin_payload_t
#define ptl_match_bits_t uint32_t
#define ptl_req_ct_t uint32_t
#define ptl_process_t uint32_t
#define ptl_dma_h uint64_t
#define ptl_size_t uint32_t
#define ptl_hdr_data_t uint32_t
#define ptl_request_type_t uint32_t
#define ptl_ack_req_t uint32_t
#define ptl_type_t uint32_t
#define ptl_datatype_t uint32_t
#define ptl_op_t uint32_t
#define ptl_ct_h uint32_t
#define PtlHandlerDMAToHostNB p4spin_DMAToHostNB
#define PtlHandlerDMAToHostB p4spin_DMAToHostB
#define PtlHandlerDMAFromHostNB p4spin_DMAFromHostNB
#define PtlHandlerDMAFromHostB p4spin_DMAFromHostB
#define PtlHandlerDMATest p4spin_DMATest
#define PtlHandlerDMAWait p4spin_DMAWait
#define PtlHandlerDMACASNB p4spin_DMACASNB
#define PtlHandlerDMACASB p4spin_DMACASB
#define P4SPIN_NUMBER(type, value) _Generic((value), float: p4spin_real, double: p4spin_real, default: p4spin_whole)(type, value)
#define PtlHandlerDMAFetchAddNB(offset, inc, before, type, options, handle) \
	p4spin_DMAFetchAddNB(offset, P4SPIN_NUMBER(type, inc), before, type, options, handle)
#define PtlHandlerDMAFetchAddB(offset, inc, before, type, options) p4spin_DMAFetchAddB(offset, P4SPIN_NUMBER(type, inc), before, type, options)
#define PtlHandlerCAS p4spin_CAS
#define PtlHandlerFAdd p4spin_FAdd
#define PtlHandlerPutFromHost p4spin_PutFromHost
#define PtlHandlerPutFromDevice p4spin_PutFromDevice
#define PtlHandlerGetToHost p4spin_GetToHost
#define PtlHandlerGetFromHost p4spin_GetToHost
#define PtlHandlerGetToDevice p4spin_GetToDevice
#define PtlHandlerGetFromDevice p4spin_GetToDevice
#define PtlHandlerAtomicFromHost p4spin_AtomicFromHost
#define PtlHandlerAtomicFromDevice p4spin_AtomicFromDevice
#define PtlHandlerYield p4spin_Yield
#define PtlHandlerCTGet(ct, out) \
	_Generic((out), ptl_ct_event_t *: p4spin_CTGetEvent, uint32_t *: p4spin_CTGetCount, default: p4spin_CTGetCount64)(ct, out)
#define PtlHandlerCTSet(ct, to) _Generic((to), ptl_ct_event_t: p4spin_CTSetEvent, default: p4spin_CTSetCount)(ct, to)
#define PtlHandlerCTInc(ct, by) _Generic((by), ptl_ct_event_t: p4spin_CTIncEvent, default: p4spin_CTIncCount)(ct, by)

#endif
