//! A second module for slot ftbcast.rank, from its contract.
//spin:library ftbcast_rank 1.0
//spin:needs spaces=entry entry_options=op_put
#![no_std]

#[path = "../../../../examples/rust-handler/spin.rs"]
mod spin;

use core::ptr::addr_of_mut;

/// A rank's part of one broadcast. Behind it lies a bit for each packet that has come.
#[repr(C)]
pub struct State {
    match_bits: u64,
    size: u64, // spin:"unit=bytes"
    pt: u32,
    rank: u32,   // spin:"default=rank"
    packet: u32, // spin:"unit=bytes default=mtu min=1"
    packets: u32,
    reliable: u32,
    neighbours: u32,
    children: u32,
    neighbour: [u32; 62],
    padding: u32,
    got: u64,
}

/// An operation record for a copy of length bytes at an offset, without its target.
fn copy(s: &State, length: u64, offset: u64, hdr_data: u64) -> spin::Operation {
    spin::Operation {
        local: 0,
        space: spin::ENTRY_MEM,
        offset,
        length,
        target_nid: 0,
        target_pid: 0,
        pt_index: s.pt,
        ack_req: 0,
        match_bits: s.match_bits,
        remote_offset: offset,
        hdr_data,
        user_ptr: 0,
        md: 0,
        options: if s.reliable == 0 { 2 } else { 0 }, // DATAGRAMS
        atomic_op: 0,
        datatype: 0,
        operand: 0,
        fetch: 0,
        fetch_offset: 0,
        user_hdr: 0,
        user_hdr_len: 0,
    }
}

/// Sends a copy to some neighbours. false: one of the puts is refused.
unsafe fn send(s: &State, from: u32, to: u32, op: &mut spin::Operation, put: unsafe extern "C" fn(*const spin::Operation) -> i32) -> bool {
    let mut sent = true;
    for i in from..to.min(62) {
        op.target_nid = s.neighbour[i as usize];
        sent &= put(op) >= 0;
    }
    sent
}

/// Sets the bit of a packet. false: it was set already.
unsafe fn claim(s: *mut State, packet: u64) -> bool {
    let word = (s.add(1) as *mut u64).add(packet as usize / 64);
    let bit = 1 << (packet % 64);
    loop {
        let before = word.read_volatile();
        if before & bit != 0 {
            return false;
        }
        if spin::cas(word, before, before | bit) == 1 {
            return true;
        }
    }
}

#[no_mangle]
pub unsafe extern "C" fn first_payload(p: *const spin::Payload, state: *mut State) -> i32 {
    let (p, s) = (&*p, &*state);
    let packet = p.host_offset / s.packet as u64;
    // a damaged packet comes without its bytes
    if p.length == 0 || packet >= s.packets as u64 || !claim(state, packet) {
        return spin::DROP;
    }
    let mut op = copy(s, p.length as u64, p.host_offset, p.hdr_data);
    op.local = p.base;
    let mut good = send(s, 0, s.children, &mut op, spin::put_from_device);
    // the root has its bytes
    good &= p.source_nid == s.rank || spin::dma_to_host(spin::ENTRY_MEM, p.host_offset, p.base as *const u8, p.length) >= 0;
    if spin::fadd(addr_of_mut!((*state).got), 1) as u64 + 1 == s.packets as u64 {
        good &= if s.packets == 1 {
            send(s, s.children, s.neighbours, &mut op, spin::put_from_device)
        } else {
            send(s, s.children, s.neighbours, &mut copy(s, s.size, 0, p.hdr_data), spin::put_from_host)
        };
    }
    if good {
        spin::SUCCESS
    } else {
        spin::FAIL
    }
}

#[no_mangle]
pub unsafe extern "C" fn first_header(h: *const spin::Header, state: *mut State) -> i32 {
    let (h, s) = (&*h, &*state);
    if h.mlength > 0 {
        return spin::PROCESS_DATA;
    }
    if spin::cas(addr_of_mut!((*state).got), 0, 1) != 1 {
        return spin::DROP;
    }
    let mut op = copy(s, 0, 0, h.hdr_data);
    if send(s, 0, s.neighbours, &mut op, spin::put_from_device) {
        spin::PROCESS_DATA
    } else {
        spin::FAIL
    }
}
