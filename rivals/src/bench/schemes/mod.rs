//! The ways to replace an object and to retire the old one, behind one trait.
//!
//! What is measured of them (updates, tails, tables, stalls) is compiled once for each, so that
//! none pays for a call that another one saves. All of them allocate each new object, and give up
//! the old one as their users would.

pub(super) mod arc_swap;
pub(super) mod crossbeam_epoch;
pub(super) mod haphazard;
pub(super) mod locks;
pub(super) mod quiescence;
pub(super) mod sdd;
pub(super) mod seize;

/// Different values of [`Scheme::NUMBER`].
pub(super) const SCHEMES: usize = 9;

/// A way to protect what readers look at from those who replace it.
pub(super) trait Scheme: Sized + Send + Sync + 'static {
    /// Whose objects are counted: each scheme has another number, below [`SCHEMES`].
    const NUMBER: usize;
    /// A pointer to an object, never empty.
    type Place<T: Send + Sync + 'static>: Send + Sync;
    /// What a thread holds while it works: a registration, mostly nothing.
    type Thread<'a>;

    /// What all places share: a collector, mostly nothing.
    fn new() -> Self;
    fn place<T: ::quiescence::Weigh + Send + Sync + 'static>(&self, value: T) -> Self::Place<T>;
    /// Registers the calling thread.
    fn thread(&self) -> Self::Thread<'_>;

    /// Hands the object to `look`, inside the read-side section.
    fn read<T: Send + Sync + 'static, R>(
        &self,
        thread: &mut Self::Thread<'_>,
        place: &Self::Place<T>,
        look: impl FnOnce(&T) -> R,
    ) -> R;

    /// Replaces the object, and retires the old one.
    fn replace<T: Send + Sync + 'static>(
        &self,
        thread: &mut Self::Thread<'_>,
        place: &Self::Place<T>,
        value: T,
    );

    /// Called every few operations, outside every section.
    fn pause(_thread: &mut Self::Thread<'_>) {}

    /// Frees some of what was retired, if the scheme can be asked to.
    fn flush(&self) {}
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::bench::object::Turn;

    /// What is replaced is dropped, sooner or later; what is in the place can be read and goes
    /// with it.
    fn keeps_its_word<S: Scheme>(numbers: &mut Vec<usize>) {
        let scheme = S::new();
        let counted = Arc::new(());
        let place = scheme.place((0, Arc::clone(&counted)));
        let mut thread = scheme.thread();
        for i in 1..=1000_u32 {
            scheme.replace(&mut thread, &place, (i, Arc::clone(&counted)));
            assert_eq!(scheme.read(&mut thread, &place, |value| value.0), i);
            S::pause(&mut thread);
        }
        drop((thread, place));
        for _ in 0..10_000 {
            if Arc::strong_count(&counted) == 1 {
                break;
            }
            scheme.flush();
            std::thread::yield_now();
        }
        drop(scheme);
        let left = Arc::strong_count(&counted) - 1;
        // sdd and crossbeam keep a few until somebody retires again.
        assert!(left < 300, "{left} of 1,000 objects of {} are left", S::NUMBER);
        assert!(S::NUMBER < SCHEMES && !numbers.contains(&S::NUMBER));
        numbers.push(S::NUMBER);
    }

    /// One at a time with the other tests whose readers hold up what is freed here.
    #[test]
    fn every_scheme_shows_the_newest_object_and_drops_the_old_ones() {
        let _turn = Turn::wait();
        let numbers = &mut Vec::new();
        keeps_its_word::<quiescence::Threads>(numbers);
        keeps_its_word::<quiescence::Announcers>(numbers);
        keeps_its_word::<crossbeam_epoch::Epoch>(numbers);
        keeps_its_word::<seize::Hyaline>(numbers);
        keeps_its_word::<sdd::Sdd>(numbers);
        keeps_its_word::<haphazard::Hazard>(numbers);
        keeps_its_word::<arc_swap::Swapped>(numbers);
        keeps_its_word::<locks::StdRwLock>(numbers);
        keeps_its_word::<locks::ParkingLotRwLock>(numbers);
        assert_eq!(numbers.len(), SCHEMES);
    }
}
