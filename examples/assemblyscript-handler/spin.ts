// Records, codes and imports of packet handlers (docs/abi.md of spinsim is the contract), for AssemblyScript.
// Results of imports are OK (0) or more, or a negative error. Records and states are unmanaged classes: they lie where the device has put them.

export const SUCCESS: i32 = 0;
export const SUCCESS_PENDING: i32 = 1;
export const DROP: i32 = 2;
export const DROP_PENDING: i32 = 3;
export const PROCESS_DATA: i32 = 4;
export const PROCESS_DATA_PENDING: i32 = 5;
export const PROCEED: i32 = 6;
export const PROCEED_PENDING: i32 = 7;
export const FAIL: i32 = -1;
export const SEGV: i32 = -2;
export const OK: i32 = 0;
export const FAULT: i32 = -1;
export const DENIED: i32 = -2;
export const INVALID: i32 = -3;
export const NO_SPACE: i32 = -4;
export const NOT_SUPPORTED: i32 = -5;
export const ENTRY_MEM: u32 = 0;
export const HANDLER_MEM: u32 = 1;
export const TELL_FAULTS: u32 = 256;

/** The value of a counter. */
@unmanaged
export class CTEvent {
  success: u64;
  failure: u64;
}

/** What a header handler is given: a matched message. */
@unmanaged
export class Header {
  type: u32;
  user_hdr_len: u32;
  length: u64;
  mlength: u64;
  source_nid: u32;
  source_pid: u32;
  target_nid: u32;
  target_pid: u32;
  match_bits: u64;
  offset: u64;
  hdr_data: u64;
  msg_id: u64;
  user_hdr: u32;
  flags: u32;
  atomic_op: u32;
  datatype: u32;
  packet: u32;
  packet_len: u32;
}

/** What a payload handler is given: one packet. */
@unmanaged
export class Payload {
  base: u32;
  length: u32;
  offset: u64;
  msg_id: u64;
  source_nid: u32;
  source_pid: u32;
  hdr_data: u64;
  match_bits: u64;
  host_offset: u64;
  mlength: u64;
}

/** What a completion handler is given: the end of a message. */
@unmanaged
export class Completion {
  dropped_bytes: u64;
  flow_control: u32;
  failed: u32;
  msg_id: u64;
  source_nid: u32;
  source_pid: u32;
  hdr_data: u64;
  match_bits: u64;
  offset: u64;
  mlength: u64;
  packet: u32;
  packet_len: u32;
}

/** A put, get, atomic or timer. */
@unmanaged
export class Operation {
  local: u32;
  space: u32;
  offset: u64;
  length: u64;
  target_nid: u32;
  target_pid: u32;
  pt_index: u32;
  ack_req: u32;
  match_bits: u64;
  remote_offset: u64;
  hdr_data: u64;
  user_ptr: u64;
  md: u32;
  options: u32;
  atomic_op: u32;
  datatype: u32;
  operand: u32;
  fetch: u32;
  fetch_offset: u64;
  user_hdr: u32;
  user_hdr_len: u32;
}

@external("spin", "dma_to_host")
export declare function dma_to_host(space: u32, offset: u64, local: usize, len: u32): i32;
@external("spin", "dma_from_host")
export declare function dma_from_host(space: u32, offset: u64, local: usize, len: u32): i32;
@external("spin", "dma_to_host_nb")
export declare function dma_to_host_nb(space: u32, offset: u64, local: usize, len: u32): i32;
@external("spin", "dma_from_host_nb")
export declare function dma_from_host_nb(space: u32, offset: u64, local: usize, len: u32): i32;
@external("spin", "dma_cas")
export declare function dma_cas(space: u32, offset: u64, compare: u64, swap: u64, found: usize): i32;
@external("spin", "dma_cas_nb")
export declare function dma_cas_nb(space: u32, offset: u64, compare: u64, swap: u64, found: usize): i32;
@external("spin", "dma_fadd")
export declare function dma_fadd(space: u32, offset: u64, inc: u64, found: usize): i32;
@external("spin", "dma_fadd_nb")
export declare function dma_fadd_nb(space: u32, offset: u64, inc: u64, found: usize): i32;
@external("spin", "dma_fadd_typed")
export declare function dma_fadd_typed(space: u32, offset: u64, datatype: u32, inc: u64, found: usize): i32;
@external("spin", "dma_fadd_typed_nb")
export declare function dma_fadd_typed_nb(space: u32, offset: u64, datatype: u32, inc: u64, found: usize): i32;
@external("spin", "dma_test")
export declare function dma_test(handle: i32): i32;
@external("spin", "dma_wait")
export declare function dma_wait(handle: i32): i32;
@external("spin", "cas")
export declare function cas(addr: usize, compare: u64, swap: u64): i32;
@external("spin", "fadd")
export declare function fadd(addr: usize, inc: u64): i64;
@external("spin", "yield")
export declare function yieldNow(): void;
@external("spin", "put_from_host")
export declare function put_from_host(op: usize): i32;
@external("spin", "put_from_device")
export declare function put_from_device(op: usize): i32;
@external("spin", "get_from_host")
export declare function get_from_host(op: usize): i32;
@external("spin", "get_from_device")
export declare function get_from_device(op: usize): i32;
@external("spin", "atomic_from_host")
export declare function atomic_from_host(op: usize): i32;
@external("spin", "atomic_from_device")
export declare function atomic_from_device(op: usize): i32;
@external("spin", "ct_get")
export declare function ct_get(ct: u32, out: usize): i32;
@external("spin", "ct_set")
export declare function ct_set(ct: u32, success: u64, failure: u64): i32;
@external("spin", "ct_inc")
export declare function ct_inc(ct: u32, success: u64, failure: u64): i32;
@external("spin", "ack")
export declare function ack(status: i32): i32;
@external("spin", "timer")
export declare function timer(delay_ns: u64, op: usize): i32;
@external("spin", "to_self")
export declare function to_self(op: usize): i32;
@external("spin", "now")
export declare function now(): u64;
@external("spin", "timer_at")
export declare function timer_at(at_ps: u64, period_ps: u64, op: usize): i32;
@external("spin", "expiries")
export declare function expiries(): u64;
@external("spin", "timer_cancel")
export declare function timer_cancel(handle: i32): i32;
@external("spin", "atomic32")
export declare function atomic32(operation: u32, addr: usize, operand: u32, compare: u32): i32;
@external("spin", "dma_to_host_posted")
export declare function dma_to_host_posted(space: u32, offset: u64, local: usize, len: u32): i32;
@external("spin", "host_write")
export declare function host_write(space: u32, offset: u64, value: u64): i32;
@external("spin", "host_write_nb")
export declare function host_write_nb(space: u32, offset: u64, value: u64): i32;
@external("spin", "wait32")
export declare function wait32(addr: usize, expected: u32): void;
@external("spin", "my_cluster")
export declare function my_cluster(): i32;
@external("spin", "runtime_begin")
export declare function runtime_begin(): void;
@external("spin", "runtime_end")
export declare function runtime_end(): void;
@external("spin", "num_clusters")
export declare function num_clusters(): i32;
@external("spin", "flow_id")
export declare function flow_id(): i32;
@external("spin", "scratchpad")
export declare function scratchpad(cluster: u32): i64;
@external("spin", "message_memory")
export declare function message_memory(): i64;
@external("spin", "num_hpus")
export declare function num_hpus(): i32;
@external("spin", "my_hpu")
export declare function my_hpu(): i32;
@external("spin", "cycles")
export declare function cycles(): i64;
@external("spin", "log")
export declare function log(addr: usize, len: u32): void;

/** The address of a record or a state. */
// @ts-ignore: decorator
@inline
export function addressOf<T>(x: T): usize { return changetype<usize>(x); }
