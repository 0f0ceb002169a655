//! Sleepable domains: [`Srcu`], whose sections may last, move to other threads, and be held across `.await`.

mod banks;

use std::ptr::{self, NonNull};
use std::sync::Mutex;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{AcqRel, Acquire};

pub(crate) use banks::{Bank, Banks};

use crate::os::{fence, sync};

/// A sleepable domain.
#[derive(Debug)]
pub struct Srcu {
    banks: AtomicPtr<Banks>,
    turn: Mutex<u8>,
}

impl Srcu {
    /// A domain without readers.
    pub const fn new() -> Self {
        Self { banks: AtomicPtr::new(ptr::null_mut()), turn: Mutex::new(0) }
    }

    /// Begins a section.
    #[inline]
    pub fn read(&self) -> SrcuGuard<'_> {
        let banks = self.banks();
        SrcuGuard { banks, bank: banks.enter() }
    }

    #[inline(always)]
    pub(crate) fn banks(&self) -> &Banks {
        // Acquire: pairs with the exchange in `make_banks`.
        let banks = self.banks.load(Acquire);
        if banks.is_null() {
            return self.make_banks();
        }
        // SAFETY: they are given back when `self` is dropped.
        unsafe { &*banks }
    }

    /// The banks, if anybody has used them.
    pub(crate) fn banks_if_any(&self) -> Option<&Banks> {
        // SAFETY: they are given back when `self` is dropped.
        NonNull::new(self.banks.load(Acquire)).map(|banks| unsafe { banks.as_ref() })
    }

    #[cold]
    #[inline(never)]
    fn make_banks(&self) -> &Banks {
        let banks = Banks::take().expect("quiescence: out of memory");
        if self.banks.compare_exchange(ptr::null_mut(), banks.as_ptr(), AcqRel, Acquire).is_err() {
            // SAFETY: nobody has seen them.
            unsafe { Banks::give_back(banks) };
        }
        // SAFETY: they are given back when `self` is dropped.
        unsafe { &*self.banks.load(Acquire) }
    }

    /// Waits for a grace period.
    pub fn synchronize_expedited(&self) {
        let banks = self.banks();
        let mut current = sync::lock(&self.turn);
        for bank in [*current ^ 1, *current] {
            loop {
                let unlocks = banks.unlocks(bank.into());
                fence::heavy(std::iter::empty());
                if banks.locks(bank.into()) == unlocks {
                    break;
                }
                std::thread::yield_now();
            }
            banks.flip_to(bank);
            *current = bank;
        }
    }
}

impl Default for Srcu {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Srcu {
    fn drop(&mut self) {
        if let Some(banks) = NonNull::new(*self.banks.get_mut()) {
            // SAFETY: guards borrow the domain, so there are none.
            unsafe { Banks::give_back(banks) };
        }
    }
}

/// A section of a sleepable domain.
#[must_use = "the section ends when the guard is dropped"]
#[derive(Debug)]
pub struct SrcuGuard<'s> {
    banks: &'s Banks,
    bank: Bank,
}

impl Drop for SrcuGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.banks.leave(self.bank);
    }
}
