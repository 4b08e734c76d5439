/* Stand-ins for handlers of LogGOPSim2's smp_code.c, under their names: what they ask of the device is
 * what theirs do, and what they expect of who runs them. */
#include <smp.h>
#include <uthash.h>

#define CLIENT 0

typedef struct {
	uint64_t length;
} pingpong_state_t;

void pingpong_payload_handler(void *message, void *state)
{
	ptl_payload_t *p = message;
	(void)state;
	PtlHandlerPutFromDevice(NULL, p->length, 1, 0, CLIENT, 10, 0, NULL, 0);
	PtlReturn(SUCCESS);
}

void pingpong_completion_handler(void *message, void *state)
{
	pingpong_state_t *s = state;
	(void)message;
	PtlHandlerPutFromHost(0, (uint32_t)s->length, 1, 0, CLIENT, 10, 0, NULL, 0);
	PtlReturn(SUCCESS);
}

/* combine keeps a packet in a buffer on the stack. */
static void combine(ptl_payload_t *p)
{
	volatile uint32_t buffer[PACKET_SIZE / sizeof(uint32_t)];
	uint32_t *data = (uint32_t *)p->base;
	PtlHandlerDMAFromHostB(0, (void *)buffer, p->length, PTL_ME_HOST_MEM);
	for (uint32_t i = 0; i < p->length / sizeof(uint32_t); i++)
		buffer[i] ^= data[i];
	PtlHandlerDMAToHostB((void *)buffer, 0, p->length, PTL_ME_HOST_MEM);
}

void accumulate_payload_pong_handler(void *message, void *state)
{
	ptl_payload_t *p = message;
	(void)state;
	combine(p);
	PtlHandlerPutFromDevice(NULL, p->length, 1, 0, CLIENT, 10, 0, NULL, 0);
	PtlReturn(SUCCESS);
}

void dataserver_read_header_handler(void *message, void *state)
{
	ptl_header_t h = *(ptl_header_t *)message;
	(void)state;
	PtlHandlerPutFromHost(0, (uint32_t)h.user_hdr.arg[0], PTL_LOCAL_ME_CT, 0, CLIENT, 50, 0, NULL, 0);
	PtlReturn(SUCCESS);
}

void dataserver_acknowledgement_header_handler(void *message, void *state)
{
	(void)message;
	(void)state;
	PtlHandlerPutFromDevice(NULL, 1, PTL_LOCAL_ME_CT, 0, CLIENT, 40, 0, NULL, 0);
	PtlReturn(SUCCESS);
}

typedef struct {
	uint64_t key;
} kvs_state_t;

void common_header_ycsb(void *message, void *state)
{
	((kvs_state_t *)state)->key = ((ptl_header_t *)message)->user_hdr.arg[0];
	PtlReturn(SUCCESS);
}

void kvs_insert(void *message, void *state)
{
	(void)message;
	PtlReturn(((kvs_state_t *)state)->key == 7 ? SUCCESS : 99);
	PtlHandlerPutFromHost(0, 1, 1, 0, CLIENT, 10, 0, NULL, 0);
}

typedef struct {
	uint32_t my_rank, p, bcastmatch, len;
} bcast_state_t;

void bcast_payload_handler(void *message, void *state)
{
	ptl_payload_t *p = message;
	bcast_state_t *s = state;
	for (uint32_t half = s->p / 2; half >= 1; half /= 2)
		if (s->my_rank % (half * 2) == 0)
			PtlHandlerPutFromDevice(NULL, p->length, PTL_LOCAL_ME_CT, 0, s->my_rank + half, s->bcastmatch, 0, NULL, 0);
	PtlReturn(SUCCESS);
}

typedef struct {
	uint32_t last, source;
} parity_state_t;

void parity_update_header_handler(void *message, void *state)
{
	ptl_header_t *h = message;
	*(parity_state_t *)state = (parity_state_t){(uint32_t)h->user_hdr.arg[0], h->source_id};
	PtlReturn(PROCESS_DATA);
}

void parity_update_payload_handler(void *message, void *state)
{
	(void)state;
	combine(message);
	PtlReturn(SUCCESS);
}

void parity_update_completion_handler(void *message, void *state)
{
	parity_state_t *s = state;
	(void)message;
	if (s->last)
		PtlHandlerPutFromDevice(NULL, 1, PTL_LOCAL_ME_CT, 0, s->source, 30, 0, NULL, 0);
	PtlReturn(SUCCESS);
}
