/* Sends a UDP packet back, as FPsPIN's example udp_ping does: addresses of Ethernet and IP and ports of UDP change places, and the handler waits until the
 * packet has left. */
#define FPSPIN
#define SPIN_PAYLOAD udp_ping_ph
#include <handler.h>
#include <packets.h>
#include <spin_dma.h>

__handler__ void udp_ping_ph(handler_args_t *args)
{
	task_t *task = args->task;
	pkt_hdr_t *packet = task->pkt_mem;
	mac_addr_t mac = packet->eth_hdr.src;
	uint32_t node = packet->ip_hdr.source_id;
	uint16_t port = packet->udp_hdr.src_port;
	packet->eth_hdr.src = packet->eth_hdr.dest;
	packet->eth_hdr.dest = mac;
	packet->ip_hdr.source_id = packet->ip_hdr.dest_id;
	packet->ip_hdr.dest_id = node;
	packet->udp_hdr.src_port = packet->udp_hdr.dst_port;
	packet->udp_hdr.dst_port = port;
	spin_cmd_t sent;
	spin_send_packet(packet, task->pkt_mem_size, &sent);
	spin_cmd_wait(sent);
}
