//! liburcu, as Debian builds it, through the C loops in `c/`.
//!
//! Every flavour is linked once and has one domain for the whole process. What must be balanced
//! (registration) is balanced by a type here, so that the rest is safe to call.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicI32, AtomicPtr};

/// The C functions of one flavour.
pub(super) struct Flavour {
    register: unsafe extern "C" fn(),
    unregister: unsafe extern "C" fn(),
    offline: unsafe extern "C" fn(),
    synchronize: unsafe extern "C" fn(),
    read: unsafe extern "C" fn(u64, *const AtomicPtr<u64>) -> u64,
    read_until: unsafe extern "C" fn(*const AtomicI32, u32, *mut u64) -> u64,
}

macro_rules! flavour {
    ($name:ident: $register:ident $unregister:ident $offline:ident $synchronize:ident $read:ident $read_until:ident) => {
        unsafe extern "C" {
            fn $register();
            fn $unregister();
            fn $offline();
            fn $synchronize();
            fn $read(batches: u64, slot: *const AtomicPtr<u64>) -> u64;
            fn $read_until(stop: *const AtomicI32, steps: u32, chain: *mut u64) -> u64;
        }
        pub(super) static $name: Flavour = Flavour {
            register: $register,
            unregister: $unregister,
            offline: $offline,
            synchronize: $synchronize,
            read: $read,
            read_until: $read_until,
        };
    };
}

flavour!(MEMB: rivals_memb_register rivals_memb_unregister rivals_memb_offline
    rivals_memb_synchronize rivals_memb_read rivals_memb_read_until);
flavour!(QSBR: rivals_qsbr_register rivals_qsbr_unregister rivals_qsbr_offline
    rivals_qsbr_synchronize rivals_qsbr_read rivals_qsbr_read_until);
flavour!(BP: rivals_bp_register rivals_bp_unregister rivals_bp_offline
    rivals_bp_synchronize rivals_bp_read rivals_bp_read_until);

/// This thread's registration with a flavour. At most one per thread and flavour; online.
pub(super) struct Registered {
    flavour: &'static Flavour,
    /// Registration is a matter of this thread.
    _not_send: PhantomData<*const ()>,
}

impl Registered {
    pub(super) fn new(flavour: &'static Flavour) -> Self {
        // SAFETY: takes no arguments; the callers in this crate register a thread with a flavour
        // once at a time, each in a thread of its own, and dropping this unregisters it.
        unsafe { (flavour.register)() };
        Self { flavour, _not_send: PhantomData }
    }

    pub(super) fn offline(&mut self) {
        // SAFETY: this thread is registered, and by `&mut self` outside every section.
        unsafe { (self.flavour.offline)() };
    }

    pub(super) fn synchronize(&mut self) {
        // SAFETY: by `&mut self` this thread is outside every section, so it cannot wait for
        // itself; memb and bp count that, and qsbr takes the caller offline meanwhile.
        unsafe { (self.flavour.synchronize)() };
    }

    /// So many batches of [`super::BATCH`] sections; the sum of the words read.
    pub(super) fn read(&mut self, batches: u64, slot: &AtomicPtr<u64>) -> u64 {
        // SAFETY: this thread is registered; the slot is alive and points to a word that is never
        // freed (the only caller's is static); C reads it with a volatile load.
        unsafe { (self.flavour.read)(batches, slot) }
    }

    /// Sections of `steps` steps until `stop` is not 0; how many there were.
    pub(super) fn read_until(&mut self, stop: &AtomicI32, steps: u32, chain: &mut u64) -> u64 {
        // SAFETY: this thread is registered; both references outlive the call, and C reads the
        // flag with an atomic load.
        unsafe { (self.flavour.read_until)(stop, steps, chain) }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        // SAFETY: registered by `new` in this very thread, since the type is not `Send`.
        unsafe { (self.flavour.unregister)() };
    }
}
