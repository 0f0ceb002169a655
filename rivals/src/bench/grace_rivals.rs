//! The rivals of [`super::grace`], behind one trait.
//!
//! The calls are virtual, which costs each of them the same nanosecond.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use quiescence::{Domain, Qsbr, Reader};

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
    GraceRival {
        name: "quiescence",
        ours: true,
        make: || Arc::new(Threads(Domain::new())),
    },
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
    GraceRival {
        name: "liburcu-bp",
        ours: false,
        make: || Arc::new(Liburcu(&super::liburcu::BP)),
    },
];

/// A domain of some rival.
pub(super) trait Flavour: Send + Sync {
    /// Registers the calling thread, until the member is dropped.
    fn enrol(&self) -> Box<dyn Member + '_>;
}

/// A registered thread.
pub(super) trait Member {
    /// Says that this thread will not read for a while, where that has to be said.
    fn offline(&mut self);
    /// Waits for a grace period.
    fn synchronize(&mut self);
    /// Reads in sections of so many steps until told to stop; how many sections there were.
    fn read_until(&mut self, stop: &AtomicI32, steps: u32, x: &mut u64) -> u64;
}

/// The work of a section: multiplications that wait for each other, the same as in C, so that both
/// take the same time whatever the compilers are.
#[inline(always)]
pub(super) fn chain(mut x: u64, steps: u32) -> u64 {
    for _ in 0..steps {
        x = x
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
    }
    std::hint::black_box(x)
}

/// Sections until told to stop.
#[inline(always)]
fn sections(stop: &AtomicI32, mut section: impl FnMut()) -> u64 {
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
}

impl<K: quiescence::Kind> Member for (Reader<K>, &Domain<K>) {
    fn offline(&mut self) {}

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
}

impl<K: quiescence::Kind> Member for Qsbr<K> {
    fn offline(&mut self) {
        Qsbr::offline(self);
    }

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
}

#[cfg(feature = "liburcu")]
impl Member for super::liburcu::Registered {
    fn offline(&mut self) {
        Self::offline(self);
    }

    fn synchronize(&mut self) {
        Self::synchronize(self);
    }

    fn read_until(&mut self, stop: &AtomicI32, steps: u32, x: &mut u64) -> u64 {
        Self::read_until(self, stop, steps, x)
    }
}
