//! This project's library: in its global domain, with readers that announce, and in a domain of its own
//! whose limit is given.

use quiescence::{Domain, Qsbr, Rcu};

use super::Scheme;

/// Readers that enter and leave sections; the global domain.
#[derive(Debug)]
pub(in crate::bench) struct Threads;

impl Scheme for Threads {
    const NUMBER: usize = 0;
    type Place<T: Send + Sync + 'static> = Rcu<T>;
    type Thread<'a> = ();

    fn new() -> Self {
        Self
    }

    fn place<T: ::quiescence::Weigh + Send + Sync + 'static>(&self, value: T) -> Rcu<T> {
        Rcu::new(value)
    }

    fn thread(&self) {}

    #[inline(always)]
    fn read<T: Send + Sync + 'static, R>(
        &self,
        _thread: &mut (),
        place: &Rcu<T>,
        look: impl FnOnce(&T) -> R,
    ) -> R {
        let guard = quiescence::read();
        look(place.load(&guard))
    }

    #[inline(always)]
    fn replace<T: Send + Sync + 'static>(&self, _thread: &mut (), place: &Rcu<T>, value: T) {
        place.store(value);
    }

    fn flush(&self) {
        quiescence::barrier();
    }
}

/// Readers that announce quiescent states; the global domain.
#[derive(Debug)]
pub(in crate::bench) struct Announcers;

impl Scheme for Announcers {
    const NUMBER: usize = 1;
    type Place<T: Send + Sync + 'static> = Rcu<T>;
    type Thread<'a> = Qsbr;

    fn new() -> Self {
        Self
    }

    fn place<T: ::quiescence::Weigh + Send + Sync + 'static>(&self, value: T) -> Rcu<T> {
        Rcu::new(value)
    }

    fn thread(&self) -> Qsbr {
        Qsbr::register()
    }

    #[inline(always)]
    fn read<T: Send + Sync + 'static, R>(
        &self,
        thread: &mut Qsbr,
        place: &Rcu<T>,
        look: impl FnOnce(&T) -> R,
    ) -> R {
        let guard = thread.read();
        look(place.load(&guard))
    }

    #[inline(always)]
    fn replace<T: Send + Sync + 'static>(&self, _thread: &mut Qsbr, place: &Rcu<T>, value: T) {
        place.store(value);
    }

    #[inline(always)]
    fn pause(thread: &mut Qsbr) {
        thread.quiescent_state();
    }

    fn flush(&self) {
        quiescence::barrier();
    }
}

/// As [`Threads`], in a domain of its own whose callbacks may hold up to so many bytes.
#[derive(Debug)]
pub(in crate::bench) struct Limited<const BYTES_MAX: u64>(Domain);

impl<const BYTES_MAX: u64> Scheme for Limited<BYTES_MAX> {
    const NUMBER: usize = Threads::NUMBER;
    type Place<T: Send + Sync + 'static> = Rcu<T, quiescence::Private>;
    type Thread<'a> = ();

    fn new() -> Self {
        let domain = Domain::new();
        let mut tuning = domain.tuning();
        tuning.objects_max = u64::MAX;
        tuning.bytes_max = BYTES_MAX;
        // Stalls are on purpose here.
        tuning.stall_after = None;
        tuning.stall_after_expedited = None;
        domain.tune(tuning);
        Self(domain)
    }

    fn place<T: ::quiescence::Weigh + Send + Sync + 'static>(&self, value: T) -> Self::Place<T> {
        Rcu::new_in(value, self.0.clone())
    }

    fn thread(&self) {}

    #[inline(always)]
    fn read<T: Send + Sync + 'static, R>(
        &self,
        _thread: &mut (),
        place: &Self::Place<T>,
        look: impl FnOnce(&T) -> R,
    ) -> R {
        let guard = self.0.read();
        look(place.load(&guard))
    }

    #[inline(always)]
    fn replace<T: Send + Sync + 'static>(
        &self,
        _thread: &mut (),
        place: &Self::Place<T>,
        value: T,
    ) {
        place.store(value);
    }

    fn flush(&self) {
        self.0.barrier();
    }
}
