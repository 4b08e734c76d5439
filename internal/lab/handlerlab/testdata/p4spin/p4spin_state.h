/* What all files of the module include: the handlers' names and their state. */
#define SPIN_HEADER choose
#define SPIN_PAYLOAD act
#define SPIN_COMPLETION finish
#define PACKET_SIZE 64
#include "smp.h"

typedef struct {
	uint32_t header_code, payload_code, completion_code;
	uint32_t act;
	uint64_t word;
	uint64_t before;
	uint32_t seen[8];
} state_t;

int exchanges(ptl_payload_t *p);
