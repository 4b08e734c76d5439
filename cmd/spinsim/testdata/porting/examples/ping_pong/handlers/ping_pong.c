/* A stand-in for PsPIN's example of this name: it sends each packet back. */
#include <handler.h>

__handler__ void pingpong_ph(handler_args_t *args)
{
	spin_cmd_t sent;
	spin_send_packet(args->task->pkt_mem, args->task->pkt_mem_size, &sent);
	spin_cmd_wait(sent);
}
