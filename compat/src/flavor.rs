//! The flavours: their domains, where their symbols are in this process, and what their updaters
//! wait for.
//!
//! A flavour is a number in the thin libraries' calls and a [`LiburcuDomain`] here. Where its data
//! is, copied into the executable or not, only the dynamic linker knows: each thin library says so
//! once, before anything else ([`quiescence_urcu_attach`]).
//!
//! Every call that comes from C goes through [`Flavor::called`]: it finds the flavour, and makes
//! sure that no signal handler will have to register its thread in the midst of it (see
//! [`crate::reader`]).

use std::ffi::{c_int, c_uint, c_void};
use std::fmt;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicI32, fence};
use std::sync::{Once, OnceLock};

use quiescence::liburcu_readers::{LiburcuDomain, Readers, Record, Words};
use quiescence::tuning::Fences;

use crate::errno_guard::with_errno_uncancelled;
use crate::fatal::{Mistake, fatal, tolerated};
use crate::{fork, reader};

/// A flavour of liburcu.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flavor {
    /// Light fences, by membarrier.
    Memb,
    /// Full fences.
    Mb,
    /// Quiescent states.
    Qsbr,
    /// Light fences; threads register by themselves.
    Bp,
    /// Light fences whatever happens: they were to be made up for by signals.
    Signal,
}

/// How many there are.
pub(crate) const FLAVORS: usize = 5;

/// What their functions' names begin with.
const NAMES: [&str; FLAVORS] = ["urcu_memb", "urcu_mb", "urcu_qsbr", "urcu_bp", "urcu_signal"];

static DOMAINS: [LiburcuDomain; FLAVORS] = [
    LiburcuDomain::new(NAMES[0], Readers::Light),
    LiburcuDomain::new(NAMES[1], Readers::Full),
    LiburcuDomain::new(NAMES[2], Readers::Qsbr),
    LiburcuDomain::new(NAMES[3], Readers::Silent),
    LiburcuDomain::new(NAMES[4], Readers::Light),
];

static SHIMS: [OnceLock<Shim>; FLAVORS] = [const { OnceLock::new() }; FLAVORS];

/// Where a flavour's symbols are: `struct quiescence_shim`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shim {
    flavor: c_uint,
    gp: *const Words,
    has_sys_membarrier: *mut c_int,
    reader: unsafe extern "C" fn() -> *mut c_void,
}

// SAFETY: addresses of what lives for ever, and is used as atomics only.
unsafe impl Send for Shim {}
// SAFETY: as above.
unsafe impl Sync for Shim {}

impl fmt::Display for Flavor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Flavor {
    /// In the order of their numbers.
    pub(crate) const ALL: [Self; FLAVORS] =
        [Self::Memb, Self::Mb, Self::Qsbr, Self::Bp, Self::Signal];

    /// The flavour of this number.
    pub(crate) fn from_raw(number: u32) -> Self {
        let Some(&flavor) = Self::ALL.get(number as usize) else {
            fatal(format_args!(
                "there is no flavour {number}: liburcu*.so.8 and libquiescence.so.0 have different \
                 versions; install them together"
            ));
        };
        flavor
    }

    /// The flavour of a call from C.
    pub(crate) fn called(number: u32) -> Self {
        let flavor = Self::from_raw(number);
        begin(flavor);
        reader::register_ahead();
        flavor
    }

    /// The number that the thin libraries know it by.
    pub(crate) fn index(self) -> usize {
        self as usize
    }

    /// Its readers, grace periods and callbacks.
    pub(crate) fn domain(self) -> &'static LiburcuDomain {
        &DOMAINS[self.index()]
    }

    /// What its functions' names begin with.
    pub(crate) fn name(self) -> &'static str {
        NAMES[self.index()]
    }

    /// Whether its thin library has been loaded.
    pub(crate) fn is_attached(self) -> bool {
        SHIMS[self.index()].get().is_some()
    }

    fn shim(self) -> &'static Shim {
        let Some(shim) = SHIMS[self.index()].get() else {
            fatal(format_args!(
                "{self}: a function was called before the library was initialised; in a \
                 constructor of your own, call {self}_init() first"
            ));
        };
        shim
    }

    /// What all its readers look at.
    pub(crate) fn words(self) -> &'static Words {
        // SAFETY: valid for ever, by the contract of `quiescence_urcu_attach`.
        unsafe { &*self.shim().gp }
    }

    /// Where the calling thread's record is; for bp, the pointer to it.
    pub(crate) fn place(self) -> *mut c_void {
        // SAFETY: the thin library's own function, which takes nothing.
        unsafe { (self.shim().reader)() }
    }

    /// The calling thread's record, registered or not; for bp only if it is.
    pub(crate) fn record(self) -> Option<&'static Record> {
        let place = self.place();
        let record = match self {
            // SAFETY: the thread's own pointer to its record.
            Self::Bp => unsafe { *place.cast::<*const Record>() },
            _ => place.cast::<Record>().cast_const(),
        };
        // SAFETY: null, or the thread's own, which is there until it ends; bp's are there for ever.
        unsafe { record.as_ref() }
    }

    /// Whether the calling thread is in a section; not one of QSBR, whose readers are offline while
    /// they wait.
    pub(crate) fn is_reading(self) -> bool {
        self != Self::Qsbr && self.record().is_some_and(|record| !record.is_quiescent())
    }

    /// For a thread that is about to wait for readers in `what`, a function without its flavour:
    /// sees that the calling thread is none of them, as long as the answer is kept. A QSBR reader
    /// is offline meanwhile; as in liburcu, to wait is a quiescent state. A thread in a section
    /// would wait for itself: named.
    #[must_use = "a QSBR reader comes online when this goes"]
    pub(crate) fn may_wait(self, what: &str) -> Away {
        let Some(record) = self.record().filter(|record| !record.is_quiescent()) else {
            return Away { online: None };
        };
        if !reader::is_registered(self) {
            tolerated(
                Mistake::WaitUnregistered,
                format_args!(
                    "{self}_{what}() in a read-side critical section of a thread that is not \
                     registered: no grace period waits for its sections; call \
                     {self}_register_thread() before the first of them"
                ),
            );
            return Away { online: None };
        }
        if self == Self::Qsbr {
            reader::go_offline(self, record); //~ compat-away
            return Away { online: Some(record) };
        }
        fatal(format_args!(
            "{self}_{what}() inside a read-side critical section of the same thread, for which it \
             would wait for ever; call {self}_read_unlock() first, or use {self}_call_rcu()"
        ))
    }
}

/// A thread that holds no grace period of a flavour up.
pub(crate) struct Away {
    /// What is to come online again.
    online: Option<&'static Record>,
}

impl Drop for Away {
    fn drop(&mut self) {
        if let Some(record) = self.online {
            reader::come_online(Flavor::Qsbr, record); //~ compat-back
        }
    }
}

static BEGIN: Once = Once::new();

/// A fork waits for a thread that has begun an initialisation: in the child no thread would end it.
pub(crate) fn finish_beginning() {
    BEGIN.call_once(|| ());
}

/// Before the first use of anything: has forks find us.
fn begin(flavor: Flavor) {
    begin_with(|| flavor.domain().domain().tuning());
}

/// The same where there may be no flavour in the process: for hazard pointers.
pub(crate) fn begin_without_flavor() {
    begin_with(|| quiescence::Domain::global().tuning());
}

fn begin_with(use_domain: impl FnOnce() -> quiescence::tuning::Tuning) {
    BEGIN.call_once(|| {
        // A domain makes itself known to `fork`, whose handlers must be there before ours.
        let _ = use_domain();
        reader::make_key();
        fork::install();
    });
}

exported! {
    /// Says where a flavour's symbols are, which are valid for ever. Each thin library's first
    /// call; a second one changes nothing.
    fn quiescence_urcu_attach(shim: *const Shim) { attach(*shim) }
}

fn attach(shim: Shim) {
    let flavor = Flavor::from_raw(shim.flavor);
    if let Some(attached) = SHIMS[flavor.index()].get() {
        if !std::ptr::eq(attached.gp, shim.gp) {
            fatal(format_args!(
                "{flavor}: two copies of this flavour in one process, each with a {flavor}_gp of \
                 its own; link everything with the same library"
            ));
        }
        return;
    }
    let light = quiescence::tuning::fences() == Fences::Membarrier;
    if !shim.has_sys_membarrier.is_null() {
        // SAFETY: by the contract; an int that C's readers load plainly, of which 0 is right as
        // well.
        let place = unsafe { AtomicI32::from_ptr(shim.has_sys_membarrier) };
        place.store(i32::from(light), Relaxed);
    }
    // SAFETY: no thread has read yet: before this there is no registration. The words are valid for
    // ever.
    unsafe { flavor.domain().attach(shim.gp, reader::surroundings(flavor)) };
    if SHIMS[flavor.index()].set(shim).is_err() {
        fatal(format_args!("{flavor}: initialised by two threads at once"));
    }
    // Now, and not with the first call: fork's handlers must be there before a program's own, so
    // that these find the library at work; and bp's first call may come from a signal handler,
    // where nothing may be locked and allocated.
    begin(flavor);
    if flavor == Flavor::Bp {
        reader::reserve();
    }
}

exported! {
    /// `synchronize_rcu`.
    fn quiescence_urcu_synchronize(flavor: c_uint) {
        with_errno_uncancelled(|| {
            let flavor = Flavor::called(flavor);
            if flavor == Flavor::Qsbr && is_alone(flavor) {
                return;
            }
            reader::require_membarrier(flavor);
            let away = flavor.may_wait("synchronize_rcu");
            flavor.domain().domain().synchronize();
            drop(away);
        });
    }
}

/// A grace period of QSBR's with no other reader, for which the calling thread need not go offline:
/// that it waits is a quiescent state, and no other thread scans. False if there is more to be
/// done.
fn is_alone(flavor: Flavor) -> bool {
    let Some(record) = flavor.record() else { return false };
    let registered = record.is_registered();
    // One that is online without being registered is named by `may_wait`.
    (registered || record.is_quiescent()) && flavor.domain().synchronize_alone(registered)
}

/// The QSBR reader's word, as its own inlined code writes it.
pub(crate) mod word {
    use super::*;

    /// It holds no reference any more.
    pub(crate) fn leave(record: &Record) {
        // A full fence before, as in C's: the section's accesses, and those of the mutexes that it
        // took, come first.
        fence(SeqCst);
        // Release: pairs with the Acquire in the driver's scan [GP-2].
        record.word().store(0, Release);
        // The store comes before the look whether the driver sleeps [FR-1].
        fence(SeqCst);
    }

    /// It begins to hold references.
    pub(crate) fn enter(record: &Record, words: &Words) {
        // Acquire: pairs with the Release in the announcement [GP-3].
        record.word().store(words.ctr.load(Acquire), Release);
        // The driver's fence may be one for itself only, as all QSBR readers execute this one
        // [GP-8].
        fence(SeqCst);
    }
}
