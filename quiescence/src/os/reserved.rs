//! A range of addresses that is reserved as a whole, and gets memory piece by piece.

use std::ptr;

use super::calls::{self, page_size};

/// A range of addresses.
#[derive(Debug)]
pub(crate) struct Reserved {
    start: *mut u8,
    bytes: usize,
}

// SAFETY: it is a range of addresses; what is done with them is their users' concern.
unsafe impl Send for Reserved {}
// SAFETY: as above.
unsafe impl Sync for Reserved {}

impl Reserved {
    /// So many bytes of addresses, without memory. `None` if the system does not give them.
    pub(crate) fn new(bytes: usize) -> Option<Self> {
        let bytes = bytes.checked_next_multiple_of(page_size())?;
        Some(Self { start: calls::map(bytes, calls::PROT_NONE, calls::MAP_NORESERVE)?, bytes })
    }

    /// Where the range begins; that is where a page begins.
    pub(crate) fn start(&self) -> *mut u8 {
        self.start
    }

    /// Gives memory, all zero, to a part; some of its first page may have it already. `false` if
    /// there is none.
    pub(crate) fn commit(&self, from: usize, to: usize) -> bool {
        let Some((start, bytes)) = self.pages(from, to) else {
            return true;
        };
        // SAFETY: pages of this range, to which no thread has a pointer yet, but for those that
        // have memory already and stay as they are.
        unsafe { calls::protect(start, bytes, calls::READ_WRITE) }
    }

    /// Takes the memory of a part away again, but for the part of its first page that precedes it.
    /// What is not taken away is zeroed: that, and pages that are locked.
    pub(crate) fn forget(&self, from: usize, to: usize) {
        let whole = from.next_multiple_of(page_size()).min(to);
        // SAFETY: within the range, committed, and unused.
        unsafe { ptr::write_bytes(self.start.wrapping_add(from), 0, whole - from) };
        if whole < to {
            let start = self.start.wrapping_add(whole);
            // SAFETY: whole pages of the range; what is in them no thread uses. (The last one may
            // be shared with nothing: what follows is not committed.)
            let taken = unsafe { calls::advise(start, to - whole, calls::MADV_DONTNEED) };
            if !taken {
                // Memory that is locked (`mlockall`) stays; the thread that commits it again counts
                // on zeros. SAFETY: within the range, committed, and unused.
                unsafe { ptr::write_bytes(start, 0, to - whole) };
            }
        }
    }

    /// The pages in which a part lies, but for a first one in which something lies before it.
    fn pages(&self, from: usize, to: usize) -> Option<(*mut u8, usize)> {
        let page = page_size();
        let first = from.next_multiple_of(page);
        let end = to.next_multiple_of(page).min(self.bytes);
        (first < end).then(|| (self.start.wrapping_add(first), end - first))
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        // SAFETY: the mapping that `new` made; the thread that drops this uses it no more.
        unsafe { calls::unmap(self.start, self.bytes) };
    }
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::{Reserved, page_size};

    /// Fills a part, forgets it, and asks for it again.
    fn comes_back_as_zeros(is_locked: bool) {
        let page = page_size();
        let range = Reserved::new(4 * page).expect("four pages of addresses");
        assert!(range.commit(0, 4 * page));
        if is_locked {
            // SAFETY: pages of the range, which has memory. They are unlocked when it is unmapped.
            let locked = unsafe { libc::mlock(range.start().cast(), 4 * page) };
            assert_eq!(locked, 0, "{}", std::io::Error::last_os_error());
        }
        // SAFETY: the range has memory, and no other thread has it.
        unsafe { range.start().write_bytes(0xff, 4 * page) };
        let from = page / 2;
        range.forget(from, 4 * page);
        assert!(range.commit(from, 4 * page));
        // SAFETY: as above; all of it is written.
        let bytes = unsafe { std::slice::from_raw_parts(range.start(), 4 * page) };
        assert!(bytes[..from].iter().all(|&byte| byte == 0xff), "what precedes it stays");
        assert!(bytes[from..].iter().all(|&byte| byte == 0));
    }

    #[test]
    fn what_is_forgotten_is_zero() {
        comes_back_as_zeros(false);
    }

    /// Whose pages the system does not take back.
    #[test]
    fn what_is_forgotten_is_zero_where_memory_is_locked() {
        comes_back_as_zeros(true);
    }
}
