/* Handlers that share memory in ways that are ordered, and in ways that are not: the tests know the lines. */
//spin:library races 1.0
//spin:needs message_memory=4
#include <spin.h>
#include <spin_sync.h>

typedef struct {
	uint32_t n; /* which way */
	uint32_t count;
	uint32_t lock;
	uint32_t flag;
	uint64_t total;
} state_t;

static uint32_t seen;

SPIN_HANDLER(header)(const ptl_header_t *h, volatile state_t *s)
{
	if (s->n == 3)
		s->count = (uint32_t)h->length;
	if (s->n == 7)
		s->count += 1;
	if (s->n > 10)
		*(volatile uint32_t *)spin_place(spin_message_memory()) = 1;
	return PTL_PROCESS_DATA;
}

SPIN_HANDLER(payload)(const ptl_payload_t *p, volatile state_t *s)
{
	switch (s->n) {
	case 0:
		s->count += 1;
		break;
	case 1:
		PtlHandlerFAdd((uint64_t *)&s->total, 1);
		break;
	case 2:
		spin_lock(&s->lock);
		s->count += 1;
		spin_unlock(&s->lock);
		break;
	case 3:
		return s->count > 0 ? PTL_SUCCESS : PTL_FAIL;
	case 4:
		if (p->offset == 0)
			s->count = 5;
		break;
	case 5:
		if (p->offset == 0) {
			s->count = 5;
			spin_swap32(&s->flag, 1);
		} else {
			while (s->flag == 0)
				spin_yield();
			return s->count == 5 ? PTL_SUCCESS : PTL_FAIL;
		}
		break;
	case 6:
		*(volatile uint32_t *)&seen = p->length;
		break;
	case 8:
		if (spin_trylock(&s->lock))
			s->count += 1;
		spin_unlock(&s->lock);
		break;
	case 9:
		spin_dma_from_host(PTL_ME_HOST_MEM, 0, (void *)&s->total, 8);
		break;
	case 10:
		spin_dma_to_host_posted(PTL_ME_HOST_MEM, 0, (void *)&s->total, 8);
		break;
	case 11:
		return *(volatile uint32_t *)spin_place(spin_message_memory()) == 1 ? PTL_SUCCESS : PTL_FAIL;
	case 12:
		*(volatile uint32_t *)spin_place(spin_message_memory()) = 2;
	}
	return PTL_SUCCESS;
}

SPIN_HANDLER(completion)(const ptl_completion_t *c, volatile state_t *s)
{
	return s->count == ~0u ? PTL_FAIL : PTL_SUCCESS;
}
