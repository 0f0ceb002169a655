//! liburcu, as Debian builds it, through the C loops in `c/`.
//!
//! Every flavour is linked once and has one domain for the whole process. What must be balanced
//! (registration) is balanced by a type here, so that the rest is safe to call.

mod table;
mod update;

use std::hint::black_box;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicI32, AtomicPtr};
use std::time::Instant;

use self::table::Chains;
use self::update::{BY_CALL, BY_DEFER, Calls, Replaced};
use super::Rival;
use crate::cases::BATCH;
use crate::cases::loops::{Loop, Looped, SLOT};
use crate::cases::wait::{self, Idle, Member};

pub(super) const RIVALS: &[Rival] = &[
    Rival::new("liburcu-memb")
        .times(Looped::Read, || read(&MEMB, MEMB.read))
        .times(Looped::Nested, || read(&MEMB, MEMB.read_nested))
        .hash_with(|keys| Box::new(Chains::new(keys, &table::MEMB)))
        .wait(|| Box::new(&MEMB)),
    Rival::new("liburcu-qsbr")
        .times(Looped::Read, || read(&QSBR, QSBR.read))
        .hash_with(|keys| Box::new(Chains::new(keys, &table::QSBR)))
        .wait(|| Box::new(&QSBR)),
    Rival::new("liburcu-bp")
        .times(Looped::Read, || read(&BP, BP.read))
        .times(Looped::Nested, || read(&BP, BP.read_nested))
        .wait(|| Box::new(&BP)),
    Rival::new("liburcu-call")
        .replace_with(|_| Box::new(Replaced::new(&BY_CALL)))
        .hoards()
        .enqueue(|| Box::new(Calls::new()))
        .has_barrier(),
    // Its queue has 4,096 places, and a thread that finds it full waits: it does not hoard.
    Rival::new("liburcu-defer").replace_with(|_| Box::new(Replaced::new(&BY_DEFER))),
];

/// The reads are those of this flavour.
fn read(flavour: &'static Flavour, reads: Reads) -> Loop {
    Loop::new(move |batches| {
        let _registered = Registered::new(flavour);
        let begin = Instant::now();
        // SAFETY: this thread is registered with the flavour; the slot is static and points to a
        // word that is never freed; C reads it with a volatile load.
        let sum = unsafe { reads(batches, black_box(&SLOT)) };
        let elapsed = begin.elapsed();
        assert_eq!(sum, batches * BATCH, "every read saw the word");
        elapsed
    })
}

/// So many batches of [`BATCH`] sections, and the sum of the words that were read.
type Reads = unsafe extern "C" fn(u64, *const AtomicPtr<u64>) -> u64;

/// The C functions of one flavour, as in `c/flavour.h`.
#[repr(C)]
pub(super) struct Flavour {
    register: unsafe extern "C" fn(),
    unregister: unsafe extern "C" fn(),
    offline: unsafe extern "C" fn(),
    synchronize: unsafe extern "C" fn(),
    read: Reads,
    read_nested: Reads,
    read_until: unsafe extern "C" fn(*const AtomicI32, u32, *mut u64) -> u64,
}

unsafe extern "C" {
    #[link_name = "rivals_memb_flavour"]
    pub(super) safe static MEMB: Flavour;
    #[link_name = "rivals_qsbr_flavour"]
    safe static QSBR: Flavour;
    #[link_name = "rivals_bp_flavour"]
    safe static BP: Flavour;
}

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
}

impl Drop for Registered {
    fn drop(&mut self) {
        // SAFETY: registered by `new` in this very thread, since the type is not `Send`.
        unsafe { (self.flavour.unregister)() };
    }
}

/// A flavour of liburcu; the process has one domain of each.
impl wait::Flavour for &'static Flavour {
    fn enrol(&self) -> Box<dyn Member + '_> {
        Box::new(Registered::new(self))
    }

    fn enrol_idle(&self) -> Box<dyn Idle + '_> {
        let registered = Registered::new(self);
        // SAFETY: this thread is registered, and outside every section.
        unsafe { (self.offline)() };
        Box::new(registered)
    }
}

impl Member for Registered {
    fn synchronize(&mut self) {
        // SAFETY: by `&mut self` this thread is outside every section, so it cannot wait for
        // itself; memb and bp count that, and qsbr takes the caller offline meanwhile.
        unsafe { (self.flavour.synchronize)() };
    }

    fn read_until(&mut self, stop: &AtomicI32, steps: u32) -> u64 {
        // SAFETY: this thread is registered; both references outlive the call, and C reads the
        // flag with an atomic load.
        unsafe { (self.flavour.read_until)(stop, steps, &mut 1) }
    }
}
