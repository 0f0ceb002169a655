//! Which objects wait, in debug builds: an object that is retired twice, or found by a reader after
//! it was retired, ends in a panic with the places instead of a use after free some day.
//!
//! Our objects are plain boxes without a header, so the mark is beside them: a table of the
//! addresses that wait (`table`). It may touch nothing else, takes no lock, asks the allocator
//! for nothing, and waits for no thread. In release builds, and where the torture hooks break
//! things on purpose, all of it is empty and costs nothing.
//!
//! Who uses it keeps this order, or there are false alarms:
//! 1. [`note`] before the object is where somebody could run its callback;
//! 2. [`forget`] before its callback runs, or before a refused object is given back;
//! 3. [`poison`] after its drop, before its memory is given back.
//!
//! # Why a load has no false alarm
//! A reader has loaded `p` from a place, in a section. It finds `p` in the table (an object at `p`
//! was retired, its callback has not begun), looks at the place again, and finds `p` again. Then:
//! - *The object it loaded is the one in the table.* The one that it loaded stays where it is until
//!   the section ends, if it was retired rightly at all; the one in the table stays until its
//!   callback runs. So at the moment of the look into the table both are at `p`, and two objects of
//!   more than zero bytes cannot be. (Objects of zero bytes all have the same addresses. They are
//!   skipped: there is nothing in them to be read too late.)
//! - *It is reachable after it was retired.* The thread that retired it unlinked it first, then
//!   noted it; the reader saw the note, a Release that its Acquire pairs with, so its second look
//!   comes after the unlinking and cannot find what was there before. What it finds is `p` stored
//!   anew: not another object, by the above, but this one, which was put back while it waits, or
//!   never taken out.
//!
//! The table tells a reader of no object that was forgotten before it loaded `p`: who forgot it
//! gave the memory back after that, another object was made in it after that, and the reader loaded
//! the pointer that was published after that. So the reader's look comes after the forgetting.
//!
//! A mistake can go unseen: if no reader looks between the retirement and the callback, or if the
//! second retirement comes after the callback of the first. The poison is for these.

#[cfg(all(debug_assertions, not(quiescence_mutants)))]
mod table;

#[cfg(all(debug_assertions, not(quiescence_mutants)))]
mod imp {
    use std::alloc::{self, Layout};
    use std::panic::Location;

    use crate::os::on_drop::OnDrop;
    use crate::reclaim::debug_objects::table::Table;

    /// What is left in memory that was freed: the kernel's `POISON_FREE`. As a pointer on a 64-bit
    /// machine it is none that could be followed.
    pub(crate) const POISON: u8 = 0x6b;

    /// The addresses that wait, and where they were retired: for half as many as a domain has room
    /// for by default, before it grows.
    static TABLE: Table<{ if cfg!(miri) { 16 } else { 4_096 } }> = Table::new();

    /// An object of this many bytes of its own is about to wait for its grace period.
    ///
    /// # Panics
    /// If it waits already. Nothing has changed then.
    #[track_caller]
    pub(crate) fn note(object: *const (), bytes: usize) {
        if bytes == 0 {
            return;
        }
        let location = Location::caller();
        let Err(first) = TABLE.insert(object.addr(), location) else { return };
        panic!(
            "quiescence: the object at {object:p} is retired twice: at {first}, and again at {location}"
        );
    }

    /// The object waits no more: its callback is about to run, or it is given back.
    pub(crate) fn forget(object: *const ()) {
        if !object.is_null() {
            TABLE.remove(object.addr());
        }
    }

    /// A reader has loaded this pointer in a section; `still_there` looks once more where it was.
    ///
    /// # Panics
    /// If the object waits for its grace period, and is still there.
    #[track_caller]
    pub(crate) fn check_reachable(object: *const (), still_there: impl FnOnce() -> bool) {
        if object.is_null() {
            return;
        }
        if let Some(retired) = TABLE.get(object.addr())
            && still_there()
        {
            panic!(
                "quiescence: the object at {object:p} was retired at {retired} and can still be reached: \
                 it is loaded at {}; unlink it before it is retired",
                Location::caller()
            );
        }
    }

    /// Fills memory whose object has been dropped, so that the thread that still reads it is not
    /// left in doubt.
    ///
    /// # Safety
    /// `memory` is that many bytes that no thread uses and the caller may write.
    pub(crate) unsafe fn poison(memory: *mut u8, bytes: usize) {
        // SAFETY: by this function's contract.
        unsafe { memory.write_bytes(POISON, bytes) };
        // The compiler knows that no thread reads memory once it is freed; but for this it would
        // leave the writing out.
        std::hint::black_box(memory);
    }

    /// Drops an object, poisons its memory and gives it back, even if the drop panics.
    pub(crate) fn free<T: ?Sized>(object: Box<T>) {
        let layout = Layout::for_value(&*object);
        let object = Box::into_raw(object);
        let _memory = OnDrop(|| {
            if layout.size() == 0 {
                return; // a box of it has no memory
            }
            // SAFETY: an object that has been dropped left it.
            unsafe { poison(object.cast(), layout.size()) };
            // SAFETY: from a box of something with this layout, and ours.
            unsafe { alloc::dealloc(object.cast(), layout) };
        });
        // SAFETY: from a box, dropped once, and not used any more.
        unsafe { object.drop_in_place() };
    }
}

/// Where nothing is checked.
#[cfg(not(all(debug_assertions, not(quiescence_mutants))))]
mod imp {
    #[inline(always)]
    pub(crate) const fn note(_object: *const (), _bytes: usize) {}

    #[inline(always)]
    pub(crate) const fn forget(_object: *const ()) {}

    #[inline(always)]
    pub(crate) fn check_reachable(_object: *const (), _still_there: impl FnOnce() -> bool) {}

    /// # Safety
    /// None is needed here.
    #[inline(always)]
    pub(crate) const unsafe fn poison(_memory: *mut u8, _bytes: usize) {}

    #[inline(always)]
    pub(crate) fn free<T: ?Sized>(object: Box<T>) {
        drop(object);
    }
}

pub(crate) use imp::{check_reachable, forget, free, note, poison};

#[cfg(all(test, debug_assertions, not(quiescence_mutants)))]
mod tests {
    use std::sync::atomic::{AtomicPtr, Ordering::SeqCst};
    use std::{ptr, thread};

    use super::*;
    use crate::common::threads::{beside, panic_of};

    fn address<T>(object: &T) -> *const () {
        ptr::from_ref(object).cast()
    }

    #[test]
    fn objects_without_bytes_are_skipped() {
        let nothing = Box::new(());
        note(address(&*nothing), 0);
        note(address(&*nothing), 0);
        check_reachable(address(&*nothing), || unreachable!("not in the table"));
    }

    #[test]
    fn a_load_is_refused_only_if_the_object_is_in_the_table_and_in_its_place() {
        let object = 7;
        check_reachable(address(&object), || unreachable!("not in the table"));
        let retired = line!() + 1;
        note(address(&object), 4);
        check_reachable(address(&object), || false);
        let loaded = line!() + 1;
        let said = panic_of(|| check_reachable(address(&object), || true));
        let noted = line!() + 1;
        let again = panic_of(|| note(address(&object), 4));
        for (said, lines) in [(said, [retired, loaded]), (again, [retired, noted])] {
            for line in lines {
                assert!(said.contains(&format!("debug_objects.rs:{line}:")), "{said}");
            }
        }
        forget(address(&object));
        check_reachable(address(&object), || unreachable!("not in the table"));
    }

    /// An updater unlinks, notes, forgets and frees, again and again, so that addresses come back
    /// all the time; a reader that is waited for is never told of a mistake, and finds objects in
    /// the table.
    #[test]
    fn a_reader_beside_an_updater_that_makes_no_mistake_is_never_refused() {
        let domain = crate::Domain::new();
        let place = AtomicPtr::new(Box::into_raw(Box::new(0_u64)));
        let update = |_| {
            || {
                let old = place.swap(Box::into_raw(Box::new(1)), SeqCst);
                note(old.cast(), 8);
                domain.synchronize();
                forget(old.cast());
                // SAFETY: from a box, unlinked, and after a grace period.
                free(unsafe { Box::from_raw(old) });
            }
        };
        beside(1, update, || {
            let mut seen_waiting = 0;
            while seen_waiting < if cfg!(miri) { 3 } else { 20 } {
                let _guard = domain.read();
                let seen = place.load(SeqCst);
                thread::yield_now(); // so that the updater comes in between
                check_reachable(seen.cast(), || {
                    seen_waiting += 1;
                    place.load(SeqCst) == seen
                });
            }
        });
        // SAFETY: from a box, and no thread is left.
        drop(unsafe { Box::from_raw(place.into_inner()) });
    }

    #[test]
    fn poison_fills_it_all() {
        let mut memory = [0_u8; 100];
        // SAFETY: the array's own bytes, but for the last.
        unsafe { poison(memory.as_mut_ptr(), 99) };
        assert!(memory[..99].iter().all(|byte| *byte == imp::POISON));
        assert_eq!(memory[99], 0);
    }
}
