//! Records, codes and imports of packet handlers (docs/abi.md of spinsim is the contract), for Rust without its standard library.
//! Results of imports are OK (0) or more, or a negative error.
#![allow(dead_code)]

pub const SUCCESS: i32 = 0;
pub const SUCCESS_PENDING: i32 = 1;
pub const DROP: i32 = 2;
pub const DROP_PENDING: i32 = 3;
pub const PROCESS_DATA: i32 = 4;
pub const PROCESS_DATA_PENDING: i32 = 5;
pub const PROCEED: i32 = 6;
pub const PROCEED_PENDING: i32 = 7;
pub const FAIL: i32 = -1;
pub const SEGV: i32 = -2;
pub const OK: i32 = 0;
pub const FAULT: i32 = -1;
pub const DENIED: i32 = -2;
pub const INVALID: i32 = -3;
pub const NO_SPACE: i32 = -4;
pub const NOT_SUPPORTED: i32 = -5;
pub const ENTRY_MEM: u32 = 0;
pub const HANDLER_MEM: u32 = 1;
pub const TELL_FAULTS: u32 = 256;

/// The value of a counter.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CTEvent {
    pub success: u64,
    pub failure: u64,
}

/// What a header handler is given: a matched message.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Header {
    pub kind: u32,
    pub user_hdr_len: u32,
    pub length: u64,
    pub mlength: u64,
    pub source_nid: u32,
    pub source_pid: u32,
    pub target_nid: u32,
    pub target_pid: u32,
    pub match_bits: u64,
    pub offset: u64,
    pub hdr_data: u64,
    pub msg_id: u64,
    pub user_hdr: u32,
    pub flags: u32,
    pub atomic_op: u32,
    pub datatype: u32,
    pub packet: u32,
    pub packet_len: u32,
}

/// What a payload handler is given: one packet.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Payload {
    pub base: u32,
    pub length: u32,
    pub offset: u64,
    pub msg_id: u64,
    pub source_nid: u32,
    pub source_pid: u32,
    pub hdr_data: u64,
    pub match_bits: u64,
    pub host_offset: u64,
    pub mlength: u64,
}

/// What a completion handler is given: the end of a message.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Completion {
    pub dropped_bytes: u64,
    pub flow_control: u32,
    pub failed: u32,
    pub msg_id: u64,
    pub source_nid: u32,
    pub source_pid: u32,
    pub hdr_data: u64,
    pub match_bits: u64,
    pub offset: u64,
    pub mlength: u64,
    pub packet: u32,
    pub packet_len: u32,
}

/// A put, get, atomic or timer.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Operation {
    pub local: u32,
    pub space: u32,
    pub offset: u64,
    pub length: u64,
    pub target_nid: u32,
    pub target_pid: u32,
    pub pt_index: u32,
    pub ack_req: u32,
    pub match_bits: u64,
    pub remote_offset: u64,
    pub hdr_data: u64,
    pub user_ptr: u64,
    pub md: u32,
    pub options: u32,
    pub atomic_op: u32,
    pub datatype: u32,
    pub operand: u32,
    pub fetch: u32,
    pub fetch_offset: u64,
    pub user_hdr: u32,
    pub user_hdr_len: u32,
}

#[link(wasm_import_module = "spin")]
extern "C" {
    pub fn dma_to_host(space: u32, offset: u64, local: *const u8, len: u32) -> i32;
    pub fn dma_from_host(space: u32, offset: u64, local: *mut u8, len: u32) -> i32;
    pub fn dma_to_host_nb(space: u32, offset: u64, local: *const u8, len: u32) -> i32;
    pub fn dma_from_host_nb(space: u32, offset: u64, local: *mut u8, len: u32) -> i32;
    pub fn dma_cas(space: u32, offset: u64, compare: u64, swap: u64, found: *mut u64) -> i32;
    pub fn dma_cas_nb(space: u32, offset: u64, compare: u64, swap: u64, found: *mut u64) -> i32;
    pub fn dma_fadd(space: u32, offset: u64, inc: u64, found: *mut u64) -> i32;
    pub fn dma_fadd_nb(space: u32, offset: u64, inc: u64, found: *mut u64) -> i32;
    pub fn dma_fadd_typed(space: u32, offset: u64, datatype: u32, inc: u64, found: *mut u8) -> i32;
    pub fn dma_fadd_typed_nb(space: u32, offset: u64, datatype: u32, inc: u64, found: *mut u8) -> i32;
    pub fn dma_test(handle: i32) -> i32;
    pub fn dma_wait(handle: i32) -> i32;
    pub fn cas(addr: *mut u64, compare: u64, swap: u64) -> i32;
    pub fn fadd(addr: *mut u64, inc: u64) -> i64;
    #[link_name = "yield"]
    pub fn yield_now();
    pub fn put_from_host(op: *const Operation) -> i32;
    pub fn put_from_device(op: *const Operation) -> i32;
    pub fn get_from_host(op: *const Operation) -> i32;
    pub fn get_from_device(op: *const Operation) -> i32;
    pub fn atomic_from_host(op: *const Operation) -> i32;
    pub fn atomic_from_device(op: *const Operation) -> i32;
    pub fn ct_get(ct: u32, out: *mut CTEvent) -> i32;
    pub fn ct_set(ct: u32, success: u64, failure: u64) -> i32;
    pub fn ct_inc(ct: u32, success: u64, failure: u64) -> i32;
    pub fn ack(status: i32) -> i32;
    pub fn timer(delay_ns: u64, op: *const Operation) -> i32;
    pub fn to_self(op: *const Operation) -> i32;
    pub fn now() -> u64;
    pub fn timer_at(at_ps: u64, period_ps: u64, op: *const Operation) -> i32;
    pub fn expiries() -> u64;
    pub fn timer_cancel(handle: i32) -> i32;
    pub fn atomic32(operation: u32, addr: *mut u32, operand: u32, compare: u32) -> i32;
    pub fn dma_to_host_posted(space: u32, offset: u64, local: *const u8, len: u32) -> i32;
    pub fn host_write(space: u32, offset: u64, value: u64) -> i32;
    pub fn host_write_nb(space: u32, offset: u64, value: u64) -> i32;
    pub fn wait32(addr: *const u32, expected: u32);
    pub fn my_cluster() -> i32;
    pub fn runtime_begin();
    pub fn runtime_end();
    pub fn num_clusters() -> i32;
    pub fn flow_id() -> i32;
    pub fn scratchpad(cluster: u32) -> i64;
    pub fn message_memory() -> i64;
    pub fn num_hpus() -> i32;
    pub fn my_hpu() -> i32;
    pub fn cycles() -> i64;
    pub fn log(addr: *const u8, len: u32);
}

/// A handler that panics ends with FAIL.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    core::arch::wasm32::unreachable()
}
