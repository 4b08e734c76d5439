/* Handlers under the names of PsPIN's runtime: each name once. */
#include "pspin_memory.h"
#include <packets.h>
#include <pspin.h>
#include <pspin_rt.h>
#include <spin_conf.h>
#include <spin_dma.h>
#include <util.h>

/* What the memories begin with. */
typedef struct {
	int32_t sum;
	uint32_t bits;
	spin_lock_t lock;
	spin_rw_lock_t rw;
	uint32_t plain; /* changed under the lock */
	uint32_t word;
	uint32_t first, last; /* packets that the header and the tail handler have seen */
} shared_t;

_Static_assert(sizeof(shared_t) <= SPIN_SCRATCHPAD, "shared_t");

/* load is the first word of the data of a packet. */
static uint32_t load(void *packet)
{
	uint8_t *data;
	uint32_t length;
	GET_IP_UDP_PLD(packet, data, length);
	ASSERT(length >= 4);
	return *(uint32_t *)data;
}

__handler__ void pspin_hh(handler_args_t *args)
{
	shared_t *s = args->task->scratchpad[0];
	s->first = load(args->task->pkt_mem);
	spin_lock_init(&s->lock);
	amo_store(&s->bits, 0xf0);
}

/* atomics checks what each returns and leaves; nobody else uses the word under the lock. */
static int atomics(volatile uint32_t *w)
{
	int bad = 0;
	amo_store(w, 12);
	bad |= amo_swap(w, 7) != 12;
	bad |= amo_or(w, 8) != 7 || amo_and(w, 12) != 15 || amo_xor(w, 5) != 12;
	bad |= amo_max((volatile int32_t *)w, -1) != 9 || amo_maxu(w, 0xffffffff) != 9;
	bad |= amo_max((volatile int32_t *)w, 3) != -1 || amo_minu(w, 0xfffffffe) != 3 || amo_min((volatile int32_t *)w, -4) != 3;
	bad |= compare_and_swap(w, 0, 1) != -1 || compare_and_swap(w, (uint32_t)-4, 1) != 0;
	bad |= load_reserved(w) != 1 || store_conditional(w, 2) != 0 || store_conditional(w, 3) != 1;
	load_reserved(w);
	*w = 5;
	bad |= store_conditional(w, 6) == 0;
	return bad || *w != 5;
}

static int locks(shared_t *s)
{
	int bad;
	spin_lock_lock(&s->lock);
	bad = spin_lock_try_lock(&s->lock) || atomics(&s->word);
	uint32_t plain = s->plain;
	rt_time_wait_cycles(20);
	s->plain = plain + 1;
	spin_lock_unlock(&s->lock);
	spin_rw_lock_r_lock(&s->rw);
	bad = bad || futex_try_lock(&s->rw.glock);
	spin_rw_lock_r_unlock(&s->rw);
	spin_rw_lock_w_lock(&s->rw);
	spin_rw_lock_w_unlock(&s->rw);
	return bad;
}

static int commands(handler_args_t *args)
{
	task_t *task = args->task;
	spin_cmd_t c;
	spin_dma_t d;
	uint32_t done = 0, *packet = task->l2_pkt_mem;
	bool completed = false;
	spin_dma(packet, (uint8_t *)packet + 64, 16, SPIN_DMA_EXT2LOC, 0, &d);
	spin_dma_wait(d);
	spin_dma_test(d, &done);
	spin__memcpy(packet, packet + 20, ALIGN_UP(2, MEM_ALIGNMENT));
	spin__wait_for_tf_completion(spin__public_memcpy_nonblk(packet, packet + 21, 4));
	asm_mem_fence();
	done = done == 1 && spin__tf_completed(0) && packet[20] == packet[0] && packet[21] == packet[0];
	spin_dma_to_host(host(task), task->pkt_mem, 8, 1, &c);
	while (!completed)
		spin_cmd_test(c, &completed);
	spin_cmd_wait(c); /* again: it has ended */
	spin_dma_to_host(host(task) + 24, task->pkt_mem, 8, 0, &c); /* nobody is told */
	spin_cmd_wait(c);
	spin_dma_from_host(host(task), (uint32_t)packet + 96, 8, 1, &c);
	spin_cmd_wait(c);
	spin_write_to_host(host(task) + 8, 0x1122334455667788, &c);
	spin_host_write(host(task) + 16, 5, false);
	spin_cmd_wait(c);
	spin_send_packet(task->pkt_mem, 40, &c);
	spin_cmd_wait(c);
	spin_rdma_put(1, task->pkt_mem, 4, &c);
	return done != 1 || packet[16] != packet[0] || packet[24] != packet[0];
}

__handler__ void pspin_ph(handler_args_t *args)
{
	task_t *task = args->task;
	shared_t *s = task->scratchpad[0];
	uint8_t *memory = task->handler_mem;
	amo_add(&s->sum, load(task->pkt_mem));
	ip_hdr_t *ip = task->pkt_mem;
	udp_hdr_t *udp = (udp_hdr_t *)((uint8_t *)task->pkt_mem + ip->ihl * 4);
	if (memory[0] != 0xaa || task->handler_mem_size != 64 || task->scratchpad_size[3] != 128 || locks(s) || commands(args))
		SPIN_PRINTF("packet %u: wrong", load(task->pkt_mem));
	if (args->hpu_gid != args->cluster_id * NB_CORES + args->hpu_id || task->home_cluster_id >= NB_CLUSTERS || task->flow_id != 0 ||
	    rt_core_id() != args->hpu_id || rt_cluster_id() != args->cluster_id || udp->dst_port != 2000 || cycles() == 0)
		printf("packet %u: wrong numbers", load(task->pkt_mem));
}

__handler__ void pspin_th(handler_args_t *args)
{
	shared_t *s = args->task->scratchpad[0];
	uint32_t *numbers = malloc(4 * sizeof *numbers);
	s->last = load(args->task->pkt_mem);
	for (int i = 0; i < 4; i++)
		numbers[i] = MAX(MIN(i, 2), 1) + DIV_CEIL(5, 2) + FAST_DIV(8, 2) + FAST_MOD(9, 4) + AND(6, 3);
	DEBUG_PRINT("not shown");
	printf("sum %d, %u packets, first %u, last %#x, numbers %u %u %u\n", s->sum, s->plain, s->first, s->last, numbers[0], numbers[2], numbers[3]);
	free(numbers);
	if (s->sum < 0)
		TERMINATE;
}

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem_ptr)
{
	volatile handler_fn handlers[] = {pspin_hh, pspin_ph, pspin_th};
	*hh = handlers[0];
	*ph = handlers[1];
	*th = handlers[2];
	*handler_mem_ptr = NULL;
}
