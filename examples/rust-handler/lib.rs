//! A filter: packets whose first four bytes are the wanted number are deposited in host memory and counted; all others are counted and dropped.
//spin:library filter_rust 1.0
//spin:needs spaces=entry
#![no_std]

mod spin;

/// The state lies in HPU memory. The host sets wanted, the handlers count.
#[repr(C)]
pub struct State {
    passed: u64,  // deposited spin:"unit=packets"
    dropped: u64, // spin:"unit=packets"
    wanted: u32,  // first four bytes of packets that pass
}

/// payload looks at the first four bytes of a packet.
#[no_mangle]
pub unsafe extern "C" fn payload(p: *const spin::Payload, s: *mut State) -> i32 {
    let p = &*p;
    let data = core::slice::from_raw_parts(p.base as *const u8, p.length as usize);
    let wanted = (*s).wanted.to_le_bytes();
    if !data.starts_with(&wanted) {
        spin::fadd(core::ptr::addr_of_mut!((*s).dropped), 1);
        return spin::DROP;
    }
    spin::fadd(core::ptr::addr_of_mut!((*s).passed), 1);
    if spin::dma_to_host(spin::ENTRY_MEM, p.host_offset, data.as_ptr(), p.length) < 0 {
        return spin::FAIL;
    }
    spin::SUCCESS
}
