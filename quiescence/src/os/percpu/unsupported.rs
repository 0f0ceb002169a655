//! Platforms without restartable sequences: every sequence refuses.

use std::mem::MaybeUninit;
use std::sync::atomic::AtomicPtr;

pub(crate) type Word = MaybeUninit<u64>;

pub(super) fn area_offset() -> Option<isize> {
    None
}

pub(super) fn is_sound(_: super::Area) -> bool {
    false
}

pub(crate) unsafe fn increment(_: *mut u64) -> bool {
    false
}

pub(crate) unsafe fn add_at<const BYTES: usize>(_: &AtomicPtr<u64>, _: u64) -> bool {
    false
}

pub(crate) unsafe fn take_at(_: &AtomicPtr<u64>, _: u64) -> bool {
    false
}

pub(crate) unsafe fn load_words<const N: usize>(_: &AtomicPtr<Word>) -> Option<[Word; N]> {
    None
}
