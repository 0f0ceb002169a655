//! The price of a read: enter a section, load the pointer, read its word, leave.
//!
//! All rivals run the same two nested loops around a shared word, in threads that start together;
//! the inner loop is compiled into each of them.

use std::sync::atomic::AtomicPtr;

/// The word that is read, for the rivals that load a pointer themselves. Never replaced.
static WORD: u64 = 1;

/// Where the word is.
pub(crate) static SLOT: AtomicPtr<u64> = AtomicPtr::new((&raw const WORD).cast_mut());
