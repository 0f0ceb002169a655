//! One value that is copied for each reader: for values of a cache line or so.
//!
//! Nothing is allocated and nothing has to be freed; a read costs the size of the value. So it is
//! for small values only, and no design for larger ones.

use super::plan::Operation;
use super::subject::{Job, Subject};
use crate::serve::Copied;

/// Bytes of a value, at most.
pub(crate) const BYTES_MAX: usize = 64;

/// A stamp, and the words of the value.
pub(crate) const WORDS: usize = 1 + BYTES_MAX / 8;

/// A [`Copied`] place with a value in it.
pub(crate) struct Copies<C>(C);

/// The value that update number `serial` makes: each word follows from the stamp.
fn words(serial: u32) -> [u64; WORDS] {
    let stamp = u64::from(serial);
    std::array::from_fn(|i| if i == 0 { stamp } else { stamp ^ (i as u64 - 1) })
}

impl<C: Copied<[u64; WORDS]>> Subject for Copies<C> {
    type Thread = ();

    fn new(_job: &Job<'_>) -> Self {
        Self(C::new(words(0)))
    }

    fn thread(&self) {}

    #[inline]
    fn read(&self, job: &Job<'_>, _operation: Operation, (): &mut ()) -> bool {
        let [stamp, words @ ..] = self.0.read();
        let mut wrong = 0;
        let mut left = job.plan.work as usize;
        while left > 0 {
            let now = left.min(words.len());
            for (i, word) in words[..now].iter().enumerate() {
                wrong |= word ^ stamp ^ i as u64;
            }
            left -= now;
        }
        wrong != 0
    }

    #[inline]
    fn change(&self, _: &Job<'_>, _: Operation, (): &mut (), serial: u32) -> bool {
        self.0.write(words(serial));
        false
    }

    #[cfg(test)]
    fn serial(&self, _key: &super::Key) -> Option<u32> {
        Some(self.0.read()[0] as u32)
    }
}
