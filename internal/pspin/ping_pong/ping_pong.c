/* Sends a packet back: source and destination of IP and of UDP change places, in the packet. */
#define SPIN_PAYLOAD ping_pong_ph
#include <handler.h>
#include <packets.h>
#include <spin_dma.h>

__handler__ void ping_pong_ph(handler_args_t *args)
{
	ip_hdr_t *ip = args->task->pkt_mem;
	udp_hdr_t *udp = (udp_hdr_t *)((uint8_t *)ip + ip->ihl * 4);
	uint32_t node = ip->source_id;
	uint16_t port = udp->src_port;
	ip->source_id = ip->dest_id;
	ip->dest_id = node;
	udp->src_port = udp->dst_port;
	udp->dst_port = port;
	spin_cmd_t sent;
	spin_send_packet(ip, ip->length, &sent);
}
