//! The flavours: their domains, the addresses of their symbols in this process, and their grace
//! periods.
//!
//! A flavour is a number in the thin libraries' calls, and a [`LiburcuDomain`] here. Only the
//! dynamic linker knows where its data is: in the library, or in a copy in the executable. So each
//! thin library passes the addresses once, before anything else ([`quiescence_urcu_attach`]).
//!
//! Every call from C goes through [`Flavor::called`]. It finds the flavour and, if bp is loaded,
//! registers the thread for bp, so that no signal handler has to do so in the middle of the call
//! (see [`crate::reader`]).

use std::ffi::{c_int, c_uint, c_void};
use std::fmt;
use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Once, OnceLock};

use quiescence::liburcu_readers::{LiburcuDomain, Readers, Record, Words};
use quiescence::tuning::Fences;

use crate::errno_guard::with_errno_uncancelled;
use crate::fatal::{Mistake, fatal, tolerated};
use crate::{fork, reader};

/// A flavour of liburcu.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flavor {
    /// Readers execute light fences; updaters use membarrier.
    Memb,
    /// Readers execute full fences.
    Mb,
    /// Readers announce quiescent states.
    Qsbr,
    /// As `Memb`, but threads are registered by their first section.
    Bp,
    /// Readers always execute light fences: liburcu's updaters made up for that by signals.
    Signal,
}

/// The number of flavours.
pub(crate) const FLAVORS: usize = 5;

/// The prefixes of their functions' names.
const NAMES: [&str; FLAVORS] = ["urcu_memb", "urcu_mb", "urcu_qsbr", "urcu_bp", "urcu_signal"];

static DOMAINS: [LiburcuDomain; FLAVORS] = [
    LiburcuDomain::new(NAMES[0], Readers::Light),
    LiburcuDomain::new(NAMES[1], Readers::Full),
    LiburcuDomain::new(NAMES[2], Readers::Qsbr),
    LiburcuDomain::new(NAMES[3], Readers::Silent),
    LiburcuDomain::new(NAMES[4], Readers::Light),
];

static SHIMS: [OnceLock<Shim>; FLAVORS] = [const { OnceLock::new() }; FLAVORS];

/// The addresses of a flavour's symbols: `struct quiescence_shim`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shim {
    flavor: c_uint,
    gp: *const Words,
    has_sys_membarrier: *mut c_int,
    reader: unsafe extern "C" fn() -> *mut c_void,
}

// SAFETY: addresses of data that lives for ever and is accessed only atomically.
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

    /// Its number in the thin libraries.
    pub(crate) fn index(self) -> usize {
        self as usize
    }

    /// Its readers, grace periods and callbacks.
    pub(crate) fn domain(self) -> &'static LiburcuDomain {
        &DOMAINS[self.index()]
    }

    /// The prefix of its functions' names.
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
                 constructor of your own, call {self}_register_thread() first"
            ));
        };
        shim
    }

    /// The words that all its readers use.
    pub(crate) fn words(self) -> &'static Words {
        // SAFETY: valid for ever, by the contract of `quiescence_urcu_attach`.
        unsafe { &*self.shim().gp }
    }

    /// The address of the calling thread's record; for bp, of the pointer to it.
    pub(crate) fn place(self) -> *mut c_void {
        // SAFETY: the thin library's own function, which takes nothing.
        unsafe { (self.shim().reader)() }
    }

    /// The calling thread's record, registered or not; for bp, only if the thread is registered.
    pub(crate) fn record(self) -> Option<&'static Record> {
        let place = self.place();
        let record = match self {
            // SAFETY: the thread's own pointer to its record.
            Self::Bp => unsafe { *place.cast::<*const Record>() },
            _ => place.cast::<Record>().cast_const(),
        };
        // SAFETY: null, or the thread's own, which lives as long as the thread; bp's live for ever.
        unsafe { record.as_ref() }
    }

    /// Whether the calling thread is in a section; with QSBR, whether it is online.
    pub(crate) fn is_reader(self) -> bool {
        self.is_attached() && self.record().is_some_and(|record| !record.is_quiescent())
    }

    /// For a thread that is about to wait for readers in the function `what`, whose name is without
    /// its prefix. While the result is kept, the thread is not such a reader. A QSBR reader is
    /// offline meanwhile: as in liburcu, waiting is a quiescent state. A thread in a section would
    /// wait for itself: that is fatal.
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

/// While this is kept, the calling thread holds up no grace period of the flavour.
pub(crate) struct Away {
    /// The record that comes online again.
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

/// Before a fork: waits for a thread that is initialising, which the child would not have.
pub(crate) fn finish_beginning() {
    BEGIN.call_once(|| ());
}

/// Before the first use of anything: installs the handlers for `fork`.
fn begin(flavor: Flavor) {
    begin_with(|| flavor.domain().domain().tuning());
}

/// The same if the process may have no flavour: for hazard pointers.
pub(crate) fn begin_without_flavor() {
    begin_with(|| quiescence::Domain::global().tuning());
}

fn begin_with(use_domain: impl FnOnce() -> quiescence::tuning::Tuning) {
    BEGIN.call_once(|| {
        // The first use of a domain installs quiescence's handlers for `fork`, which must come
        // before ours.
        let _ = use_domain();
        reader::make_key();
        fork::install();
    });
}

exported! {
    /// Passes the addresses of a flavour's symbols, which are valid for ever. It is each thin
    /// library's first call; a second one changes nothing.
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
        // SAFETY: by the contract: an int that C's readers load plainly. A reader that loads 0 is
        // correct as well.
        let place = unsafe { AtomicI32::from_ptr(shim.has_sys_membarrier) };
        place.store(i32::from(light), Relaxed);
    }
    // SAFETY: no thread reads yet, as none can register before this. The words are valid for ever.
    unsafe { flavor.domain().attach(shim.gp, reader::surroundings(flavor)) };
    if SHIMS[flavor.index()].set(shim).is_err() {
        fatal(format_args!("{flavor}: initialised by two threads at once"));
    }
    // Now, and not with the first call: the handlers for `fork` must be installed before the
    // program's own, so that these find a library that works; and bp's first call may come from a
    // signal handler, which must neither lock nor allocate.
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

/// Makes a grace period of QSBR if there is no other reader. The calling thread need not go
/// offline: its waiting is a quiescent state, and no other thread scans. Returns false if a full
/// grace period is needed.
fn is_alone(flavor: Flavor) -> bool {
    let Some(record) = flavor.record() else { return false };
    let registered = record.is_registered();
    // `may_wait` reports a thread that is online without being registered.
    // SAFETY: the thread's own record. A QSBR reader holds no reference where it waits for others.
    let ends_at_once = || unsafe { flavor.domain().synchronize_alone(registered) };
    (registered || record.is_quiescent()) && ends_at_once()
}
