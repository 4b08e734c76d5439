/* pspin_compat.h: handlers written for PsPIN and, with -D FPSPIN, for FPsPIN: the names and argument lists of their runtime's headers, over spin.h.
 * docs/porting.md has the table of names and says what differs.
 *
 * A handler there is a function void f(handler_args_t *args). Say which of them handle messages:
 *     spinsim handler build -D SPIN_HEADER=f -D SPIN_PAYLOAD=g -D SPIN_COMPLETION=h FOLDER
 * A packet is the payload of one of this simulator's, with the network headers that the handler reads at its head; a message is as many packets.
 */
#ifndef PSPIN_COMPAT_H
#define PSPIN_COMPAT_H

#include <assert.h>
#include <spin.h>
#include <spin_sync.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if !defined(SPIN_HEADER) && !defined(SPIN_PAYLOAD) && !defined(SPIN_COMPLETION)
#error "say which functions handle messages: -D SPIN_HEADER=f, -D SPIN_PAYLOAD=f, -D SPIN_COMPLETION=f"
#endif

/* The device: clusters of HPUs. */
#ifndef NB_CORES
#define NB_CORES 8
#endif
#ifndef NB_CLUSTERS
#ifdef FPSPIN
#define NB_CLUSTERS 2
#else
#define NB_CLUSTERS 4
#endif
#endif
#define CORE_COUNT (NB_CORES * NB_CLUSTERS)
#define NUM_CLUSTER_HPUS NB_CORES
#ifndef PKT_SIZE
#define PKT_SIZE 1024
#endif

/* Bytes of the memories that the host gives a message's handlers: handler_mem is part of the state, scratchpads are the device's. */
#ifndef SPIN_HANDLER_MEM
#define SPIN_HANDLER_MEM 4096
#endif
#ifndef SPIN_SCRATCHPAD
#define SPIN_SCRATCHPAD 4096 /* in each cluster */
#endif

/* Where the device has fewer clusters than the handler believes, the scratchpad of one has several of the handler's. */
#define PSPIN_TEXT_OF(x) #x
#define PSPIN_TEXT(x) PSPIN_TEXT_OF(x)
#define PSPIN_SCRATCHPADS "scratchpad=(" PSPIN_TEXT(SPIN_SCRATCHPAD) ")*((" PSPIN_TEXT(NB_CLUSTERS) "+clusters-1)/clusters)"

enum { PSPIN_COUNTERS = 16 };
struct perf_counter {
	uint32_t sum;
	uint32_t count;
};

/* What FPsPIN's host writes for handlers and reads of them. */
struct host_data {
	uint64_t flag[CORE_COUNT];
	struct perf_counter counters[PSPIN_COUNTERS];
};

/* The state of an entry: what the host says, and the memories. */
typedef struct {
	uint32_t send_nid SPIN_FIELD("default=0xffffffff"); /* node that packets are sent to; 0xffffffff: where the packet at hand came from */
	uint32_t send_pid;                                  /* process there */
	uint32_t send_pt;                                   /* portal table index of what is sent */
	uint32_t host_mem_size SPIN_FIELD("unit=bytes default=65536"); /* of the entry's host memory, as handlers are told */
	uint64_t send_bits;                                 /* match bits of what is sent */
	struct host_data host_data;                         /* FPsPIN: flags of the host and counters */
	uint8_t handler_mem[SPIN_HANDLER_MEM] __attribute__((aligned(16)));
} pspin_state_t;

/* Addresses of host memory begin here for handlers, so that none is 0. */
#ifndef PSPIN_HOST_BASE
#define PSPIN_HOST_BASE 0x100000000ull
#endif

typedef struct task {
	void *handler_mem;
	size_t handler_mem_size;
	void *pkt_mem;
	size_t pkt_mem_size;
#ifdef SPIN_FLAT_SCRATCHPAD
	void **scratchpad; /* the memory itself, of all clusters: what handlers reckon with that take the field for one address */
#else
	void *scratchpad[NB_CLUSTERS];
#endif
	size_t scratchpad_size[NB_CLUSTERS];
	uint32_t host_mem_high;
	uint32_t host_mem_low;
	size_t host_mem_size;
	void *l2_pkt_mem;
	uint32_t home_cluster_id;
	uint32_t flow_id;
} task_t;

typedef struct handler_args {
	task_t *task;
	uint32_t hpu_gid;
	uint32_t cluster_id;
	uint32_t hpu_id;
} handler_args_t;

typedef void (*handler_fn)(handler_args_t *);

/* What belongs to a handler that is running: spin_running of spin.h points to it. */
typedef struct {
	pspin_state_t *state;
	uint32_t nid, pid; /* of who sent the message */
	volatile uint32_t *reserved;
	uint32_t loaded;
	uint32_t failed;
	int32_t commands; /* handles of commands are below */
	uint64_t ended;   /* those of the first 64 whose end the handler has seen */
} pspin_call_t;

static inline pspin_call_t *pspin_running(void) { return (pspin_call_t *)spin_running(); }

/* The clusters of the device or, if it has one, those that its HPUs would form. A division by a variable is slow on small cores: there is none where the
 * device has the clusters that the handler believes in. */
static inline uint32_t pspin_cluster(void)
{
	uint32_t cluster = (uint32_t)spin_my_cluster();
	return spin_num_clusters() == 1 ? (uint32_t)spin_my_hpu() / NB_CORES % NB_CLUSTERS : cluster < NB_CLUSTERS ? cluster : cluster % NB_CLUSTERS;
}

static inline uint32_t pspin_core(void)
{
	uint32_t hpu = (uint32_t)spin_my_hpu(), clusters = (uint32_t)spin_num_clusters();
	if (clusters > 1 && (uint32_t)spin_num_hpus() != clusters * NB_CORES)
		hpu %= (uint32_t)spin_num_hpus() / clusters;
	return hpu % NB_CORES;
}

/* A handler has ended when its commands have, as in PsPIN: those that it has not waited for itself. */
static inline bool pspin_settle(pspin_call_t *c)
{
	for (int32_t h = 0; h < c->commands; h++) {
		if (h < 64 && c->ended >> h & 1)
			continue;
		int32_t r = spin_dma_wait(h);
		c->failed |= r < 0 && r != SPIN_INVALID; /* INVALID: the handler has waited for it */
	}
	return !c->failed;
}

#ifdef PSPIN_L2_PACKETS
/* Packets in L2, for handlers that write to l2_pkt_mem: a copy apart from the one in L1. Without the definition both are the packet in L1. */
__attribute__((weak)) uint8_t pspin_l2_packets[CORE_COUNT][PKT_SIZE];
#endif

/* What PsPIN's hardware has ready for a handler, and does behind it, is the runtime's. Handlers are weak, so that a compiler does not take their calls
 * apart. */
static inline __attribute__((always_inline)) bool pspin_call(void (*handler)(handler_args_t *), pspin_call_t *c, uint32_t packet, uint32_t length)
{
	pspin_state_t *s = c->state;
	uint32_t cluster = pspin_cluster(), core = pspin_core(), clusters = (uint32_t)spin_num_clusters(), flow = (uint32_t)spin_flow_id();
	task_t task = {
		.handler_mem = s->handler_mem, .handler_mem_size = sizeof s->handler_mem,
		.pkt_mem = (void *)(uintptr_t)packet, .pkt_mem_size = length,
		.host_mem_high = (uint32_t)((uint64_t)PSPIN_HOST_BASE >> 32), .host_mem_low = (uint32_t)PSPIN_HOST_BASE, .host_mem_size = s->host_mem_size,
#ifdef PSPIN_L2_PACKETS
		.l2_pkt_mem = __builtin_memcpy(pspin_l2_packets[cluster * NB_CORES + core], (void *)(uintptr_t)packet, length),
#else
		.l2_pkt_mem = (void *)(uintptr_t)packet,
#endif
		.home_cluster_id = flow % NB_CLUSTERS, .flow_id = flow,
	};
	handler_args_t args = {&task, cluster * NB_CORES + core, cluster, core};
#ifdef SPIN_FLAT_SCRATCHPAD
	(void)clusters;
	task.scratchpad = spin_place(spin_scratchpad(0));
#endif
	for (uint32_t i = 0, pad = 0, row = 0; i < NB_CLUSTERS; i++) {
#ifndef SPIN_FLAT_SCRATCHPAD
		task.scratchpad[i] = (uint8_t *)spin_place(spin_scratchpad(pad)) + row;
		if (++pad == clusters) { /* several scratchpads of the handler's are in one cluster */
			pad = 0;
			row += SPIN_SCRATCHPAD;
		}
#endif
		task.scratchpad_size[i] = SPIN_SCRATCHPAD;
	}
	spin_runs(c);
	handler_args_t *given = &args;
	__asm__("" : "+r"(given)); /* its address is known before the handler's time begins */
	spin_runtime_end();
	handler(given);
	spin_runtime_begin(); /* to the end */
	return pspin_settle(c);
}

#ifdef SPIN_HEADER
__attribute__((noinline, weak)) void SPIN_HEADER(handler_args_t *args);

/* runs the header handler on the first packet; the message goes on. */
SPIN_NEEDS("packets=first " PSPIN_SCRATCHPADS)
__attribute__((weak, export_name("header"))) int32_t pspin_header(const ptl_header_t *h, pspin_state_t *state)
{
	spin_runtime_begin();
	pspin_call_t c = {.state = state, .nid = h->source_nid, .pid = h->source_pid};
	return pspin_call(SPIN_HEADER, &c, h->packet, h->packet_len) ? PTL_PROCESS_DATA : PTL_FAIL;
}
#endif

#ifdef SPIN_PAYLOAD
__attribute__((noinline, weak)) void SPIN_PAYLOAD(handler_args_t *args);

/* runs the packet handler. */
SPIN_NEEDS(PSPIN_SCRATCHPADS)
__attribute__((weak, export_name("payload"))) int32_t pspin_payload(const ptl_payload_t *p, pspin_state_t *state)
{
	spin_runtime_begin();
	pspin_call_t c = {.state = state, .nid = p->source_nid, .pid = p->source_pid};
	return pspin_call(SPIN_PAYLOAD, &c, p->base, p->length) ? PTL_SUCCESS : PTL_FAIL;
}
#endif

#ifdef SPIN_COMPLETION
__attribute__((noinline, weak)) void SPIN_COMPLETION(handler_args_t *args);

/* runs the tail handler on the last packet. */
SPIN_NEEDS("packets=last " PSPIN_SCRATCHPADS)
__attribute__((weak, export_name("completion"))) int32_t pspin_completion(const ptl_completion_t *e, pspin_state_t *state)
{
	spin_runtime_begin();
	pspin_call_t c = {.state = state, .nid = e->source_nid, .pid = e->source_pid};
	return pspin_call(SPIN_COMPLETION, &c, e->packet, e->packet_len) ? PTL_SUCCESS : PTL_FAIL;
}
#endif

/* What handlers call, and last the names under which they call it. */
#include <pspin_runtime.h>
#include <pspin_packets.h>

#define __handler__ __attribute__((used))
#define MIN(a, b) (((a) < (b)) ? (a) : (b))
#define MAX(a, b) (((a) > (b)) ? (a) : (b))
#define DIV_CEIL(a, b) (((a) + (b) - 1) / (b))
#define FAST_DIV(a, log2_b) ((a) >> (log2_b))
#define FAST_MOD(a, b) ((a) & ((b) - 1)) /* b a power of two */
#define AND(a, b) ((a) & (b))
#define STRINGIFY(x) #x
#define MEM_ALIGNMENT 4
#define ALIGN_UP(number, align) (((uint32_t)(number) + ((align)-1)) & ~((align)-1))
#define DMA_MAX_XFER_SIZE 32768
#define DMA_NULL 0
#define LABEL(name)
#define TRACING_DUMMY_INSTR()
#define TERMINATE abort()
#ifdef CHECK_ASSERTS
#define ASSERT(condition) assert(condition)
#else
#define ASSERT(condition)
#endif
#define SPIN_PRINTF(format, ...) printf("%s:%s:%d: " format, __FILE__, __func__, __LINE__, ##__VA_ARGS__)
#ifdef LOG
#define DEBUG_PRINT(format, ...) SPIN_PRINTF(format, ##__VA_ARGS__)
#else
#define DEBUG_PRINT(...)
#endif

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem_ptr);

#endif
