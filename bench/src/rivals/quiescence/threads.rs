//! Thread readers, in the global domain or in one of the rival's own: sections, and readers that
//! announce quiescent states.

use quiescence::tag::{DomainTag, Private};
use quiescence::{Domain, Qsbr, Rcu, Reader, Srcu};

use crate::cases::replace::{LIMIT_BYTES, Limit, Replacements, Site};
use crate::cases::wait::{Flavour, Idle, Member, chain, member};
use crate::serve::{Replace, replace};

/// Readers that enter and leave sections; the global domain.
#[derive(Debug, Default)]
pub(super) struct Threads;

replace! {
    Threads => Rcu<T>, ();
    place: |_, value| Rcu::new(value);
    read: |_, _, place, look| look(place.load(&quiescence::read()));
    replace: |_, _, place, value| place.store(value);
    flush: |_| quiescence::barrier();
}

/// Readers that announce quiescent states; the global domain.
#[derive(Debug, Default)]
pub(super) struct Announcers;

replace! {
    Announcers => Rcu<T>, Qsbr;
    place: |_, value| Rcu::new(value);
    thread: |_| Domain::global().qsbr();
    read: |_, thread, place, look| look(place.load(&thread.read()));
    replace: |_, _, place, value| place.store(value);
    pause: |thread| thread.quiescent_state();
    flush: |_| quiescence::barrier();
}

/// As [`Threads`], in a domain of its own.
#[derive(Debug, Default)]
pub(super) struct Limited(pub(super) Domain);

replace! {
    Limited => Rcu<T, Private>, ();
    place: |limited, value| Rcu::new_in(value, limited.0.clone());
    read: |limited, _, place, look| look(place.load(&limited.0.read()));
    replace: |_, _, place, value| place.store(value);
    flush: |limited| limited.0.barrier();
}

/// A design in the global domain, or of another limit, in a domain of its own.
pub(super) fn by_limit<G: Replace, L: Replace>(
    limit: Limit,
    own: fn(Domain) -> L,
) -> Box<dyn Site> {
    let bytes_max = match limit {
        Limit::Usual => return Replacements::<G>::boxed(limit),
        Limit::Low => LIMIT_BYTES,
        Limit::High => u64::MAX,
    };
    let domain = Domain::new();
    let mut tuning = domain.tuning();
    (tuning.objects_max, tuning.bytes_max) = (u64::MAX, bytes_max);
    domain.tune(tuning);
    expect_stalls(&domain);
    Replacements::<L>::with(own(domain))
}

/// Has no stall of a domain reported: there they are on purpose.
pub(super) fn expect_stalls<K: DomainTag>(domain: &Domain<K>) {
    let mut tuning = domain.tuning();
    (tuning.stall_after, tuning.stall_after_expedited) = (None, None);
    domain.tune(tuning);
}

/// As [`Announcers`], in a domain of its own.
#[derive(Debug, Default)]
pub(super) struct LimitedAnnouncers(pub(super) Domain);

replace! {
    LimitedAnnouncers => Rcu<T, Private>, Qsbr<Private>;
    place: |limited, value| Rcu::new_in(value, limited.0.clone());
    thread: |limited| limited.0.qsbr();
    read: |_, thread, place, look| look(place.load(&thread.read()));
    replace: |_, _, place, value| place.store(value);
    pause: |thread| thread.quiescent_state();
    flush: |limited| limited.0.barrier();
}

/// A private domain of ours, with readers that enter and leave sections.
impl Flavour for Domain {
    fn enrol(&self) -> Box<dyn Member + '_> {
        let wait = |_: &mut Reader<Private>| self.synchronize();
        member(self.reader(), wait, |reader, x, steps| {
            let _guard = reader.read();
            chain(x, steps)
        })
    }
}

impl Flavour for LimitedAnnouncers {
    fn enrol(&self) -> Box<dyn Member + '_> {
        let wait = |qsbr: &mut Qsbr<Private>| qsbr.synchronize();
        member(self.0.qsbr(), wait, |qsbr, x, steps| {
            let guard = qsbr.read();
            let x = chain(x, steps);
            drop(guard);
            qsbr.quiescent_state();
            x
        })
    }

    fn enrol_idle(&self) -> Box<dyn Idle + '_> {
        Box::new(self.0.qsbr().offline())
    }
}

/// Domains of ours, which can also wait in a hurry.
macro_rules! domains {
    ($($domain:ty),*) => {$(
        impl crate::serve::Domain for $domain {
            fn new() -> Self {
                Self::new()
            }

            #[inline(always)]
            fn read<R>(&self, inside: impl FnOnce() -> R) -> R {
                let _guard = <$domain>::read(self);
                inside()
            }

            fn wait(&self) {
                self.synchronize();
            }

            fn wait_in_a_hurry(&self) {
                self.synchronize_expedited();
            }
        }
    )*};
}

domains!(Domain, Srcu);
