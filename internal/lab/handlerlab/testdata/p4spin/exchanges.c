/* Another file of the module: atomics of others' memory, and gets into the device. */
#include "p4spin_state.h"

int exchanges(ptl_payload_t *p)
{
	uint8_t local[4];
	return PtlHandlerAtomicFromHost(0, 8, PTL_LOCAL_ME_CT, 0, 1, 0x15, 16, NULL, 4, PTL_SUM, PTL_INT64_T) ||
	       PtlHandlerAtomicFromDevice(p->base, 8, PTL_LOCAL_ME_CT, 0, 1, 0x16, 24, NULL, 5, PTL_BXOR, PTL_UINT32_T) ||
	       PtlHandlerAtomicFromDevice(NULL, 4, PTL_LOCAL_ME_CT, 0, 1, 0x17, 0, NULL, 6, PTL_MAX, PTL_INT) ||
	       PtlHandlerGetFromDevice(local, 4, PTL_LOCAL_ME_CT, 0, 1, 0x19, 8, NULL, 0) ||
	       PtlHandlerGetToDevice(NULL, 4, PTL_LOCAL_ME_CT, 0, 1, 0x1a, 12, NULL, 0) ||
	       PtlHandlerGetFromHost(56, 4, PTL_LOCAL_ME_CT, 0, 1, 0x1b, 5, NULL, 0);
}
