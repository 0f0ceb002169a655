//! The rivals of [`super::grace`], behind one trait.
//!
//! The calls are virtual, which costs each of them the same nanosecond.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use quiescence::{Domain, Qsbr, QsbrOffline, Reader};

/// One kind of grace period.
#[derive(Debug)]
pub struct GraceRival {
    /// The name by which it is chosen.
    pub name: &'static str,
    /// Whether it is this project's own.
    pub ours: bool,
    pub(super) make: fn() -> Arc<dyn Flavour>,
}

/// Everything that is compiled in.
pub fn rivals() -> &'static [GraceRival] {
    &RIVALS
}

static RIVALS: [GraceRival; if cfg!(feature = "liburcu") { 5 } else { 2 }] = [
    GraceRival { name: "quiescence", ours: true, make: || Arc::new(Threads(Domain::new())) },
    GraceRival {
        name: "quiescence-qsbr",
        ours: true,
        make: || Arc::new(Announcers(Domain::new())),
    },
    #[cfg(feature = "liburcu")]
    GraceRival {
        name: "liburcu-memb",
        ours: false,
        make: || Arc::new(Liburcu(&super::liburcu::MEMB)),
    },
    #[cfg(feature = "liburcu")]
    GraceRival {
        name: "liburcu-qsbr",
        ours: false,
        make: || Arc::new(Liburcu(&super::liburcu::QSBR)),
    },
    #[cfg(feature = "liburcu")]
    GraceRival { name: "liburcu-bp", ours: false, make: || Arc::new(Liburcu(&super::liburcu::BP)) },
];

/// A domain of some rival.
pub(super) trait Flavour: Send + Sync {
    /// Registers the calling thread, until the member is dropped.
    fn enrol(&self) -> Box<dyn Member + '_>;

    /// Registers the calling thread, until the result is dropped, and says that it will not read,
    /// where that has to be said.
    fn enrol_idle(&self) -> Box<dyn Idle + '_>;
}

/// A registered thread that does not read. Dropping it unregisters.
pub(super) trait Idle {}

/// A registered thread.
pub(super) trait Member {
    /// Waits for a grace period.
    fn synchronize(&mut self);
    /// Reads in sections of so many steps until told to stop; how many sections there were.
    fn read_until(&mut self, stop: &AtomicI32, steps: u32, x: &mut u64) -> u64;
}

/// The work of a section: steps that wait for each other, and that no compiler can do several of
/// at once, the same as in C: both take the same time whatever the compilers are.
#[inline(always)]
pub(super) fn chain(mut x: u64, steps: u32) -> u64 {
    for _ in 0..steps {
        x = (x ^ (x >> 32)).wrapping_mul(6_364_136_223_846_793_005);
    }
    std::hint::black_box(x)
}

/// Sections until told to stop.
#[inline(always)]
pub(super) fn sections(stop: &AtomicI32, mut section: impl FnMut()) -> u64 {
    let mut count = 0;
    // Relaxed: the flag ends the loop and publishes nothing.
    while stop.load(Ordering::Relaxed) == 0 {
        section();
        count += 1;
    }
    count
}

/// A private domain of ours, with readers that enter and leave sections.
struct Threads(Domain);

impl Flavour for Threads {
    fn enrol(&self) -> Box<dyn Member + '_> {
        Box::new((self.0.reader(), &self.0))
    }

    fn enrol_idle(&self) -> Box<dyn Idle + '_> {
        Box::new(self.0.reader())
    }
}

impl<K: quiescence::Kind> Idle for Reader<K> {}

impl<K: quiescence::Kind> Member for (Reader<K>, &Domain<K>) {
    fn synchronize(&mut self) {
        self.1.synchronize();
    }

    fn read_until(&mut self, stop: &AtomicI32, steps: u32, x: &mut u64) -> u64 {
        sections(stop, || {
            let _guard = self.0.read();
            *x = chain(*x, steps);
        })
    }
}

/// A private domain of ours, with readers that announce quiescent states.
struct Announcers(Domain);

impl Flavour for Announcers {
    fn enrol(&self) -> Box<dyn Member + '_> {
        Box::new(self.0.qsbr())
    }

    fn enrol_idle(&self) -> Box<dyn Idle + '_> {
        Box::new(self.0.qsbr().offline())
    }
}

impl<K: quiescence::Kind> Idle for QsbrOffline<K> {}

impl<K: quiescence::Kind> Member for Qsbr<K> {
    fn synchronize(&mut self) {
        Qsbr::synchronize(self);
    }

    fn read_until(&mut self, stop: &AtomicI32, steps: u32, x: &mut u64) -> u64 {
        sections(stop, || {
            let guard = self.read();
            *x = chain(*x, steps);
            drop(guard);
            self.quiescent_state();
        })
    }
}

/// A flavour of liburcu; the process has one domain of each.
#[cfg(feature = "liburcu")]
struct Liburcu(&'static super::liburcu::Flavour);

#[cfg(feature = "liburcu")]
impl Flavour for Liburcu {
    fn enrol(&self) -> Box<dyn Member + '_> {
        Box::new(super::liburcu::Registered::new(self.0))
    }

    fn enrol_idle(&self) -> Box<dyn Idle + '_> {
        let mut registered = super::liburcu::Registered::new(self.0);
        registered.offline();
        Box::new(registered)
    }
}

#[cfg(feature = "liburcu")]
impl Idle for super::liburcu::Registered {}

#[cfg(feature = "liburcu")]
impl Member for super::liburcu::Registered {
    fn synchronize(&mut self) {
        Self::synchronize(self);
    }

    fn read_until(&mut self, stop: &AtomicI32, steps: u32, x: &mut u64) -> u64 {
        Self::read_until(self, stop, steps, x)
    }
}
