/* Handlers under the names that FPsPIN adds to PsPIN's: each name once. */
#define FPSPIN
#define SPIN_HEADER slmp_first
#define SPIN_PAYLOAD slmp_packet
#define SPIN_COMPLETION slmp_last
#define SPIN_HANDLER_MEM 16
#define SPIN_SCRATCHPAD 16
#include "pspin.h"
#include <handler.h>
#include <packets.h>
#include <spin_dma.h>
#include <spin_host.h>

__handler__ void slmp_first(handler_args_t *args)
{
	slmp_pkt_hdr_t *h = args->task->pkt_mem;
	uint16_t flags = ntohs(h->slmp_hdr.flags);
	if (!SYN(flags) || ntohl(h->slmp_hdr.pkt_off) != 0 || h->ip_hdr.ihl != 5 || h->ip_hdr.version != 4)
		printf("wrong first packet");
}

__handler__ void slmp_packet(handler_args_t *args)
{
	uint32_t start = cycles();
	slmp_pkt_hdr_t *h = args->task->pkt_mem;
	mac_addr_t mac = h->eth_hdr.src;
	spin_cmd_t c;
	if (!fpspin_check_host_mem(args))
		printf("no room in host memory");
	spin_dma_to_host(HOST_ADDR(args) + CORE_COUNT * PAGE_SIZE + ntohl(h->slmp_hdr.pkt_off), (uint32_t)(h + 1), SLMP_PAYLOAD_LEN(h), 0, &c);
	if (SYN(ntohs(h->slmp_hdr.flags))) {
		h->eth_hdr.src = h->eth_hdr.dest;
		h->eth_hdr.dest = mac;
		h->slmp_hdr.flags = htons(MKACK);
		h->ip_hdr.length = htons(sizeof(ip_hdr_t) + sizeof(udp_hdr_t) + sizeof(slmp_hdr_t));
		h->ip_hdr.checksum = 0;
		h->ip_hdr.checksum = ip_checksum(&h->ip_hdr, sizeof h->ip_hdr);
		h->slmp_hdr.pkt_off = htonl(ntohl(h->slmp_hdr.pkt_off));
		spin_send_packet(args->task->pkt_mem, sizeof *h, &c);
	}
	push_counter(&__host_data.counters[0], cycles() - start);
	push_counter(&__host_data.counters[1], 5);
}

__handler__ void slmp_last(handler_args_t *args)
{
	slmp_pkt_hdr_t *h = args->task->pkt_mem;
	if (!EOM(ntohs(h->slmp_hdr.flags)) || ACK(ntohs(h->slmp_hdr.flags)))
		printf("wrong last packet");
	fpspin_flag_t answer = fpspin_host_req(args, ntohl(h->slmp_hdr.pkt_off) + SLMP_PAYLOAD_LEN(h));
	printf("host: %u bytes for HPU %u", answer.len, answer.hpu_id);
}
