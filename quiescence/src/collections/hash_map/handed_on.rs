//! Keys that a replaced entry hands on to the entry in its place.
//!
//! A replacement makes a box for key and value, and retires the old one. The key that is there is
//! moved to the new box, bit by bit, if it owns memory: so that memory stays where it is, and the
//! updater drops its own key, whose memory is in its cache, or makes none (`HashMap::update`).
//! Readers may still have the old box, and use the same memory by way of it.
//!
//! **Invariant [HM-I5]: a key that was handed on belongs to the last box that it came to, and its
//! memory is freed with that box.** The old one is freed as an entry without a key, and nothing
//! looks at its key once the section of the update has ended. So a reader that has the old box is
//! in a section that began before that box was out of reach, which is before the last one was: the
//! grace period of the last box waits for this section, too.
//!
//! Two boxes have the same key then, which only these types stand: they are read as they are, byte
//! by byte, and equal ones differ in their capacity alone, so it does not matter which one stays.
//! (Others could have a `Mutex` inside, be known by their address, or differ although they are
//! equal, as a `PathBuf` may.)

use std::any::TypeId;
use std::ffi::OsString;

/// Whether keys of this type are handed on.
#[inline(always)]
pub(super) fn hands_on<K: 'static>() -> bool {
    fn are<A: 'static, B: 'static>() -> bool {
        TypeId::of::<A>() == TypeId::of::<B>()
    }
    are::<K, String>()
        || are::<K, Box<str>>()
        || are::<K, Vec<u8>>()
        || are::<K, Box<[u8]>>()
        || are::<K, OsString>()
}
