//! The table of waiting addresses, with the place where each was retired. It has no lock, and no
//! thread waits here.
//!
//! A lock would cause priority inversion: a thread that lost its CPU while holding it would delay
//! all threads that retire or free. With a hundred threads on two CPUs there always was such a
//! thread, and the worker slept on the lock most of the time. Here a thread that stops in the
//! middle of a call delays no other.
//!
//! The table has levels; a level is an array of windows, and a window has [`PLACES`] places. An
//! address has one window in each level, and is in one place of one of them. The first level always
//! exists. If all windows of an address are full, the thread maps the next level, which is
//! [`GROWTH`] times as large and stays until the table is dropped. A thread claims a place by
//! exchanging null for the location, then stores the address. To free it, a thread exchanges the
//! address for 0, in which only one thread succeeds, then stores null as the location.
//!
//! **If two threads insert one address at once**, each stores it, then searches the other places
//! for it. The stores and loads are sequentially consistent, so at least one of the two finds the
//! other's.

use std::panic::Location;
use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicPtr, AtomicUsize};

use crate::os::memory;

/// Places in a window. Their addresses fill one cache line.
const PLACES: usize = 8;

/// How many times as many windows each level has as the one before.
const GROWTH: usize = 4;

/// Levels after the first: more than there are addresses to fill.
const LEVELS: usize = 16;

type RetiredAt = &'static Location<'static>;

/// Some places. In zeroed memory all are free.
#[derive(Debug)]
#[repr(C, align(128))]
struct Window {
    /// 0: no address.
    addresses: [AtomicUsize; PLACES],
    /// Null: the place is free.
    locations: [AtomicPtr<Location<'static>>; PLACES],
}

/// A table whose first level has `FIRST` windows.
#[derive(Debug)]
pub(super) struct Table<const FIRST: usize> {
    first: [Window; FIRST],
    /// Null: the level has not been made.
    more: [AtomicPtr<Window>; LEVELS],
}

impl Window {
    const fn new() -> Self {
        Self {
            addresses: [const { AtomicUsize::new(0) }; PLACES],
            locations: [const { AtomicPtr::new(ptr::null_mut()) }; PLACES],
        }
    }

    /// Claims a free place for the caller, if there is one.
    fn claim(&self, location: RetiredAt) -> Option<usize> {
        let location = ptr::from_ref(location).cast_mut();
        (0..PLACES).find(|place| {
            let place = &self.locations[*place];
            // Relaxed: a hint. Acquire: pairs with the Release in `leave`: the address that was in
            // this place before is gone.
            place.load(Relaxed).is_null()
                && place.compare_exchange(ptr::null_mut(), location, Acquire, Relaxed).is_ok()
        })
    }

    /// Frees the place, if this address is in it.
    fn leave(&self, place: usize, address: usize) -> bool {
        // Relaxed: which thread succeeds is all that counts; the store below orders it. The load
        // sees what was noted before the object was forgotten.
        let left = self.addresses[place].load(Relaxed) == address
            && self.addresses[place].compare_exchange(address, 0, Relaxed, Relaxed).is_ok();
        if left {
            // Release: pairs with the Acquire in `claim`.
            self.locations[place].store(ptr::null_mut(), Release);
        }
        left
    }

    /// If this address is in the place: where it was retired.
    fn look(&self, place: usize, address: usize) -> Option<RetiredAt> {
        // SeqCst: with the store in `Table::insert`, see the head of this file. As an Acquire it
        // pairs with that store: a thread that finds the address sees what came before the
        // insertion, such as the unlinking.
        let stands = || self.addresses[place].load(SeqCst) == address;
        if !stands() {
            return None;
        }
        // Acquire: pairs with the exchanges in `claim` and `leave`.
        let location = self.locations[place].load(Acquire);
        // SAFETY: null, or from a `'static` reference.
        let location = unsafe { location.as_ref() };
        location.filter(|_| stands()) // else it may be that of another address
    }
}

impl<const FIRST: usize> Table<FIRST> {
    pub(super) const fn new() -> Self {
        Self {
            first: [const { Window::new() }; FIRST],
            more: [const { AtomicPtr::new(ptr::null_mut()) }; LEVELS],
        }
    }

    /// Inserts an address, which is not 0, with the place where it was retired.
    ///
    /// # Errors
    /// Where it was retired before, if it is in the table. The table is unchanged then.
    pub(super) fn insert(&self, address: usize, retired: RetiredAt) -> Result<(), RetiredAt> {
        let mut level = 0;
        let (window, place) = loop {
            // If there is no memory for another level, the address is not recorded.
            let Some(window) = self.window_made(level, address) else { return Ok(()) };
            if let Some(place) = window.claim(retired) {
                break (window, place);
            }
            level += 1;
        };
        // SeqCst: with the load in `Window::look`, see the head of this file; as a Release it pairs
        // with that.
        window.addresses[place].store(address, SeqCst);
        let own = &window.addresses[place];
        match self.find(address, |one| !ptr::eq(one, own)) {
            None => Ok(()),
            Some(first) => {
                // A callback that removes the other entry may have removed this one instead.
                if !window.leave(place, address) {
                    self.remove(address);
                }
                Err(first)
            }
        }
    }

    /// Where this address was retired, if it is in the table.
    pub(super) fn get(&self, address: usize) -> Option<RetiredAt> {
        self.find(address, |_| true)
    }

    /// Removes this address, if it is in the table.
    pub(super) fn remove(&self, address: usize) {
        let leave = |window: &Window| (0..PLACES).any(|place| window.leave(place, address));
        let _ = self.windows(address).any(leave);
    }

    /// If this address is in one of the places for which `of` is true: where it was retired.
    fn find(&self, address: usize, of: impl Fn(&AtomicUsize) -> bool) -> Option<RetiredAt> {
        self.windows(address).find_map(|window| {
            (0..PLACES)
                .filter(|place| of(&window.addresses[*place]))
                .find_map(|place| window.look(place, address))
        })
    }

    /// The windows of this address, level by level.
    fn windows(&self, address: usize) -> impl Iterator<Item = &Window> {
        (0..=LEVELS).map_while(move |level| self.window(level, address))
    }

    /// How many windows a level has.
    const fn len(level: usize) -> usize {
        FIRST * GROWTH.pow(level as u32)
    }

    /// The window of this address in a level, if that level exists.
    fn window(&self, level: usize, address: usize) -> Option<&Window> {
        let Some(before) = level.checked_sub(1) else {
            return Some(&self.first[index(address, FIRST)]);
        };
        // Acquire: pairs with the exchange in `window_made`: the zeros of the level are seen.
        let windows = self.more.get(before)?.load(Acquire);
        if windows.is_null() {
            return None;
        }
        // SAFETY: `index` returns less than the number of windows in the level.
        let window = unsafe { windows.add(index(address, Self::len(level))) };
        // SAFETY: as above; levels stay until the table is dropped.
        Some(unsafe { &*window })
    }

    /// The same, but makes the level if it does not exist; `None` if the system has no memory.
    fn window_made(&self, level: usize, address: usize) -> Option<&Window> {
        if let Some(window) = self.window(level, address) {
            return Some(window);
        }
        let made_at = self.more.get(level - 1)?;
        let bytes = Self::len(level).checked_mul(size_of::<Window>())?;
        let made: *mut Window = memory::map_zeroed(bytes)?.cast();
        // AcqRel: pairs with the Acquire in `window`.
        if made_at.compare_exchange(ptr::null_mut(), made, AcqRel, Relaxed).is_err() {
            // SAFETY: mapped above, and no other thread has seen it: another thread's level was
            // stored first.
            unsafe { memory::unmap(made.cast(), bytes) };
        }
        self.window(level, address)
    }
}

impl<const FIRST: usize> Drop for Table<FIRST> {
    fn drop(&mut self) {
        for (before, level) in self.more.iter_mut().enumerate() {
            let (windows, bytes) = (*level.get_mut(), Self::len(before + 1) * size_of::<Window>());
            if windows.is_null() {
                break;
            }
            // SAFETY: mapped by `window_made`, and no thread uses the table.
            unsafe { memory::unmap(windows.cast(), bytes) };
        }
    }
}

/// Which of a level's `windows` belongs to this address.
fn index(address: usize, windows: usize) -> usize {
    // The golden ratio spreads neighbours; its topmost bits are the best ones.
    let spread = (address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((u128::from(spread) * windows as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Barrier;
    use std::sync::atomic::AtomicU32;

    use super::*;
    use crate::common::{random::Random, threads::threads};

    /// Compared with a map: many levels after a first one with one window, places that are freed
    /// and claimed again, addresses that are inserted twice.
    #[test]
    fn it_does_what_a_map_does() {
        let here = Location::caller();
        let (table, mut map) = (Table::<1>::new(), BTreeMap::new());
        let mut random = Random(1);
        let addresses = if cfg!(miri) { 60 } else { 3_000 };
        for step in 0..addresses * 20 {
            let address = 16 * (1 + random.index(addresses));
            if step / addresses % 5 < 3 {
                let before = map.insert(address, here);
                assert_eq!(table.insert(address, here).err(), before);
            } else {
                table.remove(address);
                map.remove(&address);
            }
            assert_eq!(table.get(address), map.get(&address).copied());
        }
        for address in (1..=addresses).map(|n| 16 * n) {
            assert_eq!(table.get(address), map.get(&address).copied());
        }
    }

    /// If two threads insert an address at once, at least one is refused; if both are, the address
    /// is not in the table.
    #[test]
    fn of_two_at_once_one_is_refused() {
        let here = Location::caller();
        let table = Table::<1>::new();
        let (start, noted) = (Barrier::new(2), AtomicU32::new(0));
        let rounds = if cfg!(miri) { 20 } else { 2_000 };
        threads(2, |thread| {
            for address in (1..=rounds).map(|n| 16 * n) {
                start.wait();
                let is_noted = table.insert(address, here).is_ok();
                noted.fetch_add(u32::from(is_noted), SeqCst);
                start.wait();
                if thread == 0 {
                    let count = noted.swap(0, SeqCst);
                    assert!(count <= 1, "both");
                    assert_eq!(table.get(address).is_some(), count == 1);
                    table.remove(address);
                    assert!(table.get(address).is_none());
                }
            }
        });
    }
}
