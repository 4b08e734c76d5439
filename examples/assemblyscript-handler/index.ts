/** A filter: packets whose first four bytes are the wanted number are deposited in host memory and counted; all others are counted and dropped. */
//spin:library filter_as 1.0
//spin:needs spaces=entry
import * as spin from "./spin";
import { Payload } from "./spin";

/** The state lies in HPU memory. The host sets wanted, the handlers count. */
@unmanaged
class State {
  passed: u64; // deposited spin:"unit=packets"
  dropped: u64; // spin:"unit=packets"
  wanted: u32; // first four bytes of packets that pass
}

/** payload looks at the first four bytes of a packet. */
export function payload(p: Payload, s: State): i32 {
  if (p.length < 4 || load<u32>(p.base) != s.wanted) {
    spin.fadd(spin.addressOf(s) + offsetof<State>("dropped"), 1);
    return spin.DROP;
  }
  spin.fadd(spin.addressOf(s) + offsetof<State>("passed"), 1);
  return spin.dma_to_host(spin.ENTRY_MEM, p.host_offset, p.base, p.length) < 0 ? spin.FAIL : spin.SUCCESS;
}
