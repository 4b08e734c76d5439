/* pspin_runtime.h: the functions of PsPIN's runtime, for pspin_compat.h. */
#ifndef PSPIN_RUNTIME_H
#define PSPIN_RUNTIME_H

#define SPIN_OK 0
#define SPIN_FAIL 1

/* A command under way: the handle of an operation and 1, or 0: it has ended. */
typedef uint32_t spin_cmd_t;
typedef uint32_t spin_dma_t;
typedef uint32_t dma_t;
typedef volatile uint32_t futex_t;
typedef futex_t spin_lock_t;
typedef struct spin_rw_lock {
	spin_lock_t glock;
	volatile int32_t num_readers;
} spin_rw_lock_t;

/* Atomics on 32 bits. */
static inline uint32_t pspin_atomic(uint32_t operation, volatile void *at, uint32_t operand, uint32_t compare)
{
	return (uint32_t)spin_atomic32(operation, at, operand, compare);
}

#define amo_swap(at, v) pspin_atomic(SPIN_SWAP32, at, (uint32_t)(v), 0)
#define amo_store(at, v) ((void)pspin_atomic(SPIN_SWAP32, at, (uint32_t)(v), 0))
#define amo_add(at, v) ((int32_t)pspin_atomic(SPIN_ADD32, at, (uint32_t)(v), 0))
#define amo_and(at, v) pspin_atomic(SPIN_AND32, at, (uint32_t)(v), 0)
#define amo_or(at, v) pspin_atomic(SPIN_OR32, at, (uint32_t)(v), 0)
#define amo_xor(at, v) pspin_atomic(SPIN_XOR32, at, (uint32_t)(v), 0)
#define amo_max(at, v) ((int32_t)pspin_atomic(SPIN_MAX32, at, (uint32_t)(v), 0))
#define amo_maxu(at, v) pspin_atomic(SPIN_MAXU32, at, (uint32_t)(v), 0)
#define amo_min(at, v) ((int32_t)pspin_atomic(SPIN_MIN32, at, (uint32_t)(v), 0))
#define amo_minu(at, v) pspin_atomic(SPIN_MINU32, at, (uint32_t)(v), 0)

/* Load-reserved and store-conditional: the store happens if the word holds what was loaded. 0: stored; 1: not. */
static inline uint32_t load_reserved(volatile const uint32_t *at)
{
	pspin_call_t *c = pspin_running();
	c->reserved = (volatile uint32_t *)at;
	c->loaded = pspin_atomic(SPIN_OR32, c->reserved, 0, 0);
	return c->loaded;
}

static inline unsigned store_conditional(volatile uint32_t *at, uint32_t value)
{
	pspin_call_t *c = pspin_running();
	if (c->reserved != at)
		return 1;
	c->reserved = NULL;
	return pspin_atomic(SPIN_CSWAP32, at, value, c->loaded) != c->loaded;
}

/* 0: swapped, -1: another value. */
static inline int compare_and_swap(volatile uint32_t *at, uint32_t old, uint32_t value)
{
	return pspin_atomic(SPIN_CSWAP32, at, value, old) == old ? 0 : -1;
}

/* Locks. */
static inline void futex_init(futex_t *f) { amo_store(f, 0); }
static inline void futex_unlock(futex_t *f) { amo_store(f, 0); }
static inline int futex_try_lock(futex_t *f) { return amo_or(f, 1) == 0; }

static inline int futex_lock_s(futex_t *f)
{
	while (amo_or(f, 1))
		spin_yield();
	return 1;
}

#define futex_lock futex_lock_s

static inline int spin_lock_init(spin_lock_t *l) { futex_init(l); return SPIN_OK; }
static inline int spin_lock_try_lock(spin_lock_t *l) { return futex_try_lock(l); }
static inline int spin_lock_lock(spin_lock_t *l) { futex_lock_s(l); return SPIN_OK; }
static inline int spin_lock_unlock(spin_lock_t *l) { futex_unlock(l); return SPIN_OK; }

static inline int spin_rw_lock_r_lock(spin_rw_lock_t *l)
{
	if (amo_add(&l->num_readers, 1) == 0)
		spin_lock_lock(&l->glock);
	return SPIN_OK;
}

static inline int spin_rw_lock_r_unlock(spin_rw_lock_t *l)
{
	if (amo_add(&l->num_readers, -1) == 1)
		spin_lock_unlock(&l->glock);
	return SPIN_OK;
}

static inline int spin_rw_lock_w_lock(spin_rw_lock_t *l) { return spin_lock_lock(&l->glock); }
static inline int spin_rw_lock_w_unlock(spin_rw_lock_t *l) { return spin_lock_unlock(&l->glock); }

/* rt_time_wait_cycles computes for so many cycles. */
static inline void rt_time_wait_cycles(unsigned cycles)
{
	for (int64_t end = spin_cycles() + cycles; spin_cycles() < end;)
		;
}

static inline uint32_t cycles(void) { return (uint32_t)spin_cycles(); }
static inline uint32_t rt_core_id(void) { return pspin_core(); }
static inline uint32_t rt_cluster_id(void) { return pspin_cluster(); }

/* pspin_result keeps a failure: handlers do not look at what they are returned, so their shim returns FAIL. */
static inline int pspin_result(int32_t result)
{
	if (result >= 0 || result == SPIN_INVALID)
		return SPIN_OK;
	pspin_running()->failed = 1;
	return SPIN_FAIL;
}

/* pspin_ended notes whether the handler has seen the end of a command, so that its own end need not wait for it. */
static inline void pspin_ended(pspin_call_t *c, int32_t handle, bool ended)
{
	if (handle >= 0 && handle < 64)
		c->ended = (c->ended & ~(1ull << handle)) | (uint64_t)ended << handle;
}

/* Commands. One may ask for the end of one as often as one likes: INVALID says that its handle is free, so it has ended. */
static inline int spin_cmd_wait(spin_cmd_t command)
{
	pspin_call_t *c = pspin_running();
	if (command == 0)
		return SPIN_OK;
	int32_t r = spin_dma_wait((int32_t)command - 1);
	pspin_ended(c, (int32_t)command - 1, true);
	return pspin_result(r);
}

static inline int spin_cmd_test(spin_cmd_t command, bool *completed)
{
	pspin_call_t *c = pspin_running();
	int32_t r = command == 0 ? 1 : spin_dma_test((int32_t)command - 1);
	*completed = r != 0;
	pspin_ended(c, (int32_t)command - 1, *completed);
	return pspin_result(r);
}

/* A command of PsPIN is some stores into the registers of its command unit: the price of the import. What is around the import here is the runtime's. The
 * functions return what is returned and, above it, the command. */
#define PSPIN_ASIDE static __attribute__((noinline, unused)) uint64_t
#define PSPIN_COMMAND(call) \
	spin_runtime_begin(); \
	uint64_t spin_result = (call); \
	spin_runtime_end(); \
	if (command) \
		*command = (spin_cmd_t)(spin_result >> 32); \
	return (int)(uint32_t)spin_result

/* pspin_command notes the handle of a command, which the end of the handler waits for. */
static inline uint64_t pspin_command(pspin_call_t *c, int32_t handle, int result)
{
	pspin_ended(c, handle, false);
	if (handle >= c->commands)
		c->commands = handle + 1;
	return (uint64_t)(handle < 0 ? 0 : (uint32_t)handle + 1) << 32 | (uint32_t)result;
}

/* pspin_start_dma starts an operation on host memory; where the device has no room for one more it waits for its end. A write without an event is posted. */
PSPIN_ASIDE pspin_start_dma(int to_host, uint64_t host, uint32_t nic, uint32_t length, int event)
{
	pspin_call_t *c = pspin_running();
	void *local = (void *)(uintptr_t)nic;
	host -= PSPIN_HOST_BASE;
	int32_t r;
	if (to_host && !event) {
		r = spin_dma_to_host_posted(PTL_ME_HOST_MEM, host, local, length);
		return pspin_command(c, -1, pspin_result(r == SPIN_INVALID ? SPIN_DENIED : r));
	}
	r = to_host ? spin_dma_to_host_nb(PTL_ME_HOST_MEM, host, local, length) : spin_dma_from_host_nb(PTL_ME_HOST_MEM, host, local, length);
	int32_t handle = r;
	if (r == SPIN_NO_SPACE)
		r = to_host ? spin_dma_to_host(PTL_ME_HOST_MEM, host, local, length) : spin_dma_from_host(PTL_ME_HOST_MEM, host, local, length);
	if (r == SPIN_INVALID)
		r = SPIN_DENIED;
	return pspin_command(c, handle, pspin_result(r));
}

static inline int pspin_dma(int to_host, uint64_t host, uint32_t nic, uint32_t length, int event, spin_cmd_t *command)
{
	PSPIN_COMMAND(pspin_start_dma(to_host, host, nic, length, event));
}

/* pspin_start_write writes 8 bytes that the command carries: posted if nobody asks for its end. An address that is no multiple of 8 takes a DMA. */
PSPIN_ASIDE pspin_start_write(uint64_t host, uint64_t data, bool asked)
{
	pspin_call_t *c = pspin_running();
	int32_t r = asked ? spin_host_write_nb(PTL_ME_HOST_MEM, host - PSPIN_HOST_BASE, data) : spin_host_write(PTL_ME_HOST_MEM, host - PSPIN_HOST_BASE, data);
	int32_t handle = asked ? r : -1;
	if (r == SPIN_NO_SPACE || r == SPIN_INVALID)
		r = spin_dma_to_host(PTL_ME_HOST_MEM, host - PSPIN_HOST_BASE, &data, sizeof data);
	return pspin_command(c, handle, pspin_result(r));
}

static inline int pspin_write(uint64_t host, uint64_t data, spin_cmd_t *command)
{
	PSPIN_COMMAND(pspin_start_write(host, data, command != NULL));
}

/* pspin_start_send sends one packet from HPU memory, to a node or, with pspin_start_answer, to where the state says. */
PSPIN_ASIDE pspin_start_send(uint32_t nid, const void *data, uint32_t length)
{
	pspin_call_t *c = pspin_running();
	ptl_process_t to = {nid, nid == c->nid ? c->pid : c->state->send_pid};
	ptl_op_t op = spin_op(length, PTL_NO_ACK_REQ, to, c->state->send_pt, c->state->send_bits, 0, 0, 0);
	op.local = (uint32_t)(uintptr_t)data;
	int32_t r = spin_put_from_device(&op);
	return (uint32_t)pspin_result(r == SPIN_INVALID ? SPIN_DENIED : r);
}

PSPIN_ASIDE pspin_start_answer(const void *data, uint32_t length)
{
	pspin_call_t *c = pspin_running();
	return pspin_start_send(c->state->send_nid == UINT32_MAX ? c->nid : c->state->send_nid, data, length);
}

static inline int spin_send_packet(void *data, uint32_t length, spin_cmd_t *command)
{
	PSPIN_COMMAND(pspin_start_answer(data, length));
}

static inline int spin_rdma_put(uint32_t dest, void *data, uint32_t length, spin_cmd_t *command)
{
	PSPIN_COMMAND(pspin_start_send(dest, data, length));
}

/* Between memories of the NIC, which are one here. */
static inline int pspin_local_dma(void *from, void *to, size_t size, spin_dma_t *command)
{
	if (command)
		*command = 0;
	if (size == 0)
		return SPIN_FAIL;
	__builtin_memmove(to, from, size);
	return SPIN_OK;
}

static inline int pspin_local_test(uint32_t *completed)
{
	*completed = 1;
	return SPIN_OK;
}

/* The same under older names. A copy has ended when its function returns. */
static inline uint32_t spin__memcpy_nonblk(void *from, void *to, uint32_t size)
{
	__builtin_memmove(to, from, size);
	return 0;
}

static inline void spin__memcpy(void *from, void *to, uint32_t size) { (void)spin__memcpy_nonblk(from, to, size); }
static inline void spin__wait_for_tf_completion(uint32_t copy) { (void)copy; }
static inline char spin__tf_completed(uint32_t copy) { (void)copy; return 1; }
#define spin__public_memcpy_nonblk spin__memcpy_nonblk
#define spin__public_memcpy spin__memcpy
#define spin__public_wait_for_tf_completion spin__wait_for_tf_completion
#define spin__public_tf_completed spin__tf_completed

static inline void asm_mem_fence(void) { __asm__ __volatile__("" ::: "memory"); }

/* Addresses may be given as pointers, and a command as false. */
#define spin_dma_to_host(host, nic, length, event, command) \
	pspin_dma(1, (host), (uint32_t)(uintptr_t)(nic), (length), (event) != 0, (spin_cmd_t *)(uintptr_t)(command))
#define spin_dma_from_host(host, nic, length, event, command) \
	pspin_dma(0, (host), (uint32_t)(uintptr_t)(nic), (length), (event) != 0, (spin_cmd_t *)(uintptr_t)(command))
#define spin_write_to_host(host, data, command) pspin_write((host), (data), (spin_cmd_t *)(uintptr_t)(command))
#define spin_host_write spin_write_to_host
#define SPIN_DMA_EXT2LOC 1
#define SPIN_DMA_LOC2EXT 0
#define spin_dma(from, to, size, direction, options, command) ((void)(direction), (void)(options), pspin_local_dma((from), (to), (size), (command)))
#define spin_dma_wait(command) ((void)(command), SPIN_OK)
#define spin_dma_test(command, completed) ((void)(command), pspin_local_test(completed))

#ifdef FPSPIN
/* The host and a handler talk by flags: the handler writes one to its page of host memory, the host answers in HPU memory (host_data.flag of the
 * state). With FPSPIN_HOST_ANSWERS nobody need: the answer is the request. */
#define PAGE_SIZE 4096
#define MAX_COUNTERS PSPIN_COUNTERS
#define DMA_BUS_WIDTH 512
#define DMA_ALIGN (DMA_BUS_WIDTH / 8)
#ifndef DO_HOST
#define DO_HOST 0
#endif
#define HPU_ID(args) ((args)->hpu_gid)
#define HOST_ADDR(args) ((uint64_t)(args)->task->host_mem_high << 32 | (args)->task->host_mem_low)
#define HOST_ADDR_HPU(args) (HOST_ADDR(args) + HPU_ID(args) * PAGE_SIZE)
#define HOST_PLD_ADDR(args) (HOST_ADDR_HPU(args) + DMA_ALIGN)

typedef struct {
	union {
		struct {
			uint8_t dma_id;
			uint32_t len;
			uint16_t hpu_id;
		} __attribute__((packed));
		uint64_t data;
	};
} fpspin_flag_t;

__attribute__((weak)) volatile uint8_t dma_idx[CORE_COUNT];

/* The host's flags are looked at through a function that lets others run: they change meanwhile. */
static inline volatile struct host_data *pspin_host_data(void)
{
	spin_yield();
	return &pspin_running()->state->host_data;
}

#define __host_data (*pspin_host_data())

static inline void push_counter(volatile struct perf_counter *counter, uint32_t duration)
{
	amo_add(&counter->count, 1);
	amo_add(&counter->sum, duration);
}

static inline bool fpspin_check_host_mem(handler_args_t *args)
{
	return args->task->host_mem_size >= CORE_COUNT * PAGE_SIZE;
}

static inline fpspin_flag_t fpspin_host_req(handler_args_t *args, uint32_t len)
{
	fpspin_flag_t asked = {.dma_id = ++dma_idx[HPU_ID(args)], .len = len, .hpu_id = (uint16_t)HPU_ID(args)}, answer;
	pspin_write(HOST_ADDR_HPU(args), asked.data, NULL);
#ifdef FPSPIN_HOST_ANSWERS
	answer = asked;
#else
	volatile uint32_t *word = (volatile uint32_t *)&pspin_running()->state->host_data.flag[HPU_ID(args)];
	for (;;) {
		answer.data = __host_data.flag[HPU_ID(args)];
		if (answer.dma_id == asked.dma_id)
			break;
		spin_wait32(word, (uint32_t)answer.data); /* its first byte is in there */
	}
#endif
	return answer;
}
#endif

#endif
