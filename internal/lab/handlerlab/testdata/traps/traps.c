/* Traps as it is told: the tests know the lines. */
//spin:library traps 1.0
#include <spin.h>

typedef struct {
	uint32_t n; /* which trap */
	uint32_t zero;
} state_t;

static uint32_t divide(uint32_t a, uint32_t b)
{
	return a / b;
}

static int forever(volatile uint32_t *at)
{
	for (;;)
		*at += 1;
	return 0;
}

SPIN_HANDLER(payload)(const ptl_payload_t *p, state_t *s)
{
	volatile uint32_t *zero = &s->zero;

	switch (s->n) {
	case 1:
		__builtin_trap();
	case 2:
		return divide(p->length, *zero);
	case 3:
		return forever(zero);
	case 4:
		return *(volatile uint32_t *)(0xfffffff0u + *zero);
	case 5:
		return PtlHandlerFAdd((uint64_t *)(uintptr_t)(*zero + 2004), 1);
	case 6:
		return ((volatile state_t *)(uintptr_t)*zero)->zero;
	case 7:
		*(volatile uint32_t *)(uintptr_t)(*zero + 16) = 1;
		break;
	case 8:
		return PtlHandlerDMAToHostB((void *)(uintptr_t)*zero, 0, 8, PTL_ME_HOST_MEM);
	}
	return PTL_SUCCESS;
}
