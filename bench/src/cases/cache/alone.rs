//! What one CPU sees of its caches: sets that many objects share, objects that begin in the middle
//! of a line, a list and an array, blocks that come back warm, and a table that a sequential read
//! displaces.

use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use quiescence::Rcu;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

use super::{Geometry, Load, prefetch};
use crate::cases::form::Form;
use crate::slices::{Part, Row};

/// Bytes that a form of [`Sweep`] reads through, again and again.
const WINDOW_BYTES: u64 = 4 << 10;

/// How far ahead of a sequential read its lines are asked for, in lines.
const AHEAD_LINES: usize = 16;

/// Words of memory that begin where a way of the first cache begins.
struct Words {
    words: Vec<u64>,
    /// The first word at such an address.
    begin: usize,
}

impl Words {
    fn new(count: u64, geometry: &Geometry) -> Words {
        let way_words = (geometry.way_bytes() / 8) as usize;
        let words = vec![0; count as usize + way_words];
        let skip = (words.as_ptr() as usize / 8) % way_words;
        Words { words, begin: (way_words - skip) % way_words }
    }

    /// Links these places, given in words from the beginning, to a ring in a random order; a place
    /// has `last + 1` words, of which the first and the last one together say where the next is.
    fn ring(&mut self, mut places: Vec<usize>, last: usize) -> usize {
        let mut generator = ChaCha8Rng::seed_from_u64(1);
        places.shuffle(&mut generator);
        places.iter_mut().for_each(|place| *place += self.begin);
        for (number, &place) in places.iter().enumerate() {
            let next = places[(number + 1) % places.len()] as u64;
            if last == 0 {
                self.words[place] = next;
            } else {
                let half = generator.random::<u64>();
                self.words[place] = half;
                self.words[place + last] = half ^ next;
            }
        }
        places[0]
    }

    /// Goes round a ring from the place `at`; `next` reads where the next place is.
    fn go_round<'a>(
        &'a self,
        at: &'a AtomicUsize,
        next: impl Fn(&[u64], usize) -> u64 + Sync + 'a,
    ) -> Row<'a> {
        Row::new(1, move |part| {
            // Relaxed: one thread goes round.
            let mut place = at.load(Ordering::Relaxed);
            let took = part.times(|| place = next(&self.words, place) as usize);
            at.store(place, Ordering::Relaxed);
            took
        })
    }
}

/// Objects whose first and last words are read, in two places: that before, and that after.
pub(crate) struct Rings {
    /// Each with the place of an object.
    rings: [(Words, AtomicUsize); 2],
    /// The last word.
    last: usize,
}

impl Rings {
    /// Objects of one word, a whole way apart, as pages are: their first lines share one set,
    /// unless each begins at a line of its own colour.
    pub(crate) fn conflicts(geometry: &Geometry) -> Box<dyn Load> {
        let way_words = geometry.way_bytes() / 8;
        // Four times as many lines as a set has room for, and far fewer than the cache.
        let objects = 4 * geometry.first.ways;
        Self::boxed(geometry, (objects + 1) * way_words, objects, 0, |object, is_after| {
            let colour = if is_after { object % geometry.sets() } else { 0 };
            (object * way_words) as usize + colour as usize * geometry.line_words()
        })
    }

    /// Objects as long as a line: each on two lines, or each on one.
    pub(crate) fn lines(geometry: &Geometry) -> Box<dyn Load> {
        let line_words = geometry.line_words();
        // Three quarters of the second cache if each has one line. Three lines apart: an odd
        // number, so that all sets have their share of them.
        let objects = 3 * geometry.second_bytes / geometry.line_bytes / 4;
        let words = (3 * objects + 2) * line_words as u64;
        Self::boxed(geometry, words, objects, line_words - 1, |object, is_after| {
            3 * object as usize * line_words + if is_after { 0 } else { line_words / 2 }
        })
    }

    fn boxed(
        geometry: &Geometry,
        words: u64,
        objects: u64,
        last: usize,
        place: impl Fn(u64, bool) -> usize,
    ) -> Box<dyn Load> {
        let rings = [false, true].map(|is_after| {
            let mut words = Words::new(words, geometry);
            let places = (0..objects).map(|object| place(object, is_after));
            let first = words.ring(places.collect(), last);
            (words, AtomicUsize::new(first))
        });
        Box::new(Self { rings, last })
    }
}

impl Load for Rings {
    fn row(&self, form: Form) -> Row<'_> {
        let last = self.last;
        let (words, at) = &self.rings[usize::from(form != Form::Before)];
        match last {
            0 => words.go_round(at, |words, at| words[at]),
            _ => words.go_round(at, move |words, at| words[at] ^ words[at + last]),
        }
    }
}

/// Elements of a line each, twice as many as the second cache holds: a list, whose next place is
/// read from an element, and an array, whose next place is known.
pub(crate) struct Walk {
    words: Words,
    list: AtomicUsize,
    array: AtomicUsize,
    line_words: usize,
    /// Where the last element begins.
    last: usize,
}

impl Walk {
    pub(crate) fn boxed(geometry: &Geometry) -> Box<dyn Load> {
        let line_words = geometry.line_words();
        let elements = (2 * geometry.second_bytes / geometry.line_bytes) as usize;
        let mut words = Words::new((elements * line_words) as u64, geometry);
        let first = words.ring((0..elements).map(|element| element * line_words).collect(), 0);
        let last = words.begin + (elements - 1) * line_words;
        let [list, array] = [first, words.begin].map(AtomicUsize::new);
        Box::new(Self { words, list, array, line_words, last })
    }
}

impl Load for Walk {
    fn row(&self, form: Form) -> Row<'_> {
        if form == Form::Before {
            return self.words.go_round(&self.list, |words, at| words[at]);
        }
        self.words.go_round(&self.array, |words, at| {
            black_box(words[at]);
            if at == self.last { self.words.begin as u64 } else { (at + self.line_words) as u64 }
        })
    }
}

/// A value that is replaced again and again. Blocks of the size that is kept come back from this
/// thread's last objects, still in its cache; those that are a word longer, from the allocator.
pub(crate) struct Replaced {
    returned: Rcu<[u64; 65]>,
    kept: Rcu<[u64; 64]>,
}

impl Replaced {
    pub(crate) fn boxed(_: &Geometry) -> Box<dyn Load> {
        Box::new(Self { returned: Rcu::new([0; 65]), kept: Rcu::new([0; 64]) })
    }
}

impl Load for Replaced {
    fn row(&self, form: Form) -> Row<'_> {
        Row::new(1, move |part| match form {
            Form::Before => part.times(|| self.returned.store(black_box([1; 65]))),
            _ => part.times(|| self.kept.store(black_box([1; 64]))),
        })
    }
}

/// A table in half of the second cache, which is looked up while something else is read
/// from end to end now and then.
pub(crate) struct Sweep {
    table: Words,
    at: AtomicUsize,
    look_ups: u64,
    /// What is read, twice as long as the second cache.
    stream: Vec<u64>,
    line_words: usize,
}

impl Sweep {
    pub(crate) fn boxed(geometry: &Geometry) -> Box<dyn Load> {
        let line_words = geometry.line_words();
        let look_ups = geometry.second_bytes / 2 / geometry.line_bytes;
        let mut table = Words::new((look_ups + 1) * line_words as u64, geometry);
        let places = (0..look_ups as usize).map(|line| line * line_words).collect();
        let at = table.ring(places, 0);
        let stream = vec![1; (2 * geometry.second_bytes / 8) as usize];
        Box::new(Self { table, at: AtomicUsize::new(at), look_ups, stream, line_words })
    }

    /// Reads as many words in each form.
    fn sweep(&self, form: Form) -> u64 {
        let sum = |words: &[u64]| words.iter().fold(0, |sum: u64, word| sum.wrapping_add(*word));
        match form {
            Form::Before => sum(&self.stream),
            Form::Halfway => {
                let mut all = 0;
                for (number, line) in self.stream.chunks(self.line_words).enumerate() {
                    if let Some(ahead) = self.stream.get((number + AHEAD_LINES) * self.line_words) {
                        prefetch::<true, _>(ahead);
                    }
                    all += sum(line);
                }
                all
            }
            Form::After => {
                let window = (WINDOW_BYTES as usize / 8).min(self.stream.len());
                let times = self.stream.len() / window;
                (0..times).map(|_| sum(black_box(&self.stream[..window]))).sum()
            }
        }
    }
}

impl Load for Sweep {
    fn row(&self, form: Form) -> Row<'_> {
        let body = move |part: &Part<'_>| {
            let once = |_| {
                assert_eq!(black_box(self.sweep(form)), self.stream.len() as u64, "all was read");
                // Relaxed: one thread looks up.
                let mut at = self.at.load(Ordering::Relaxed);
                let begin = Instant::now();
                for _ in 0..self.look_ups {
                    at = self.table.words[at] as usize;
                }
                self.at.store(at, Ordering::Relaxed);
                begin.elapsed()
            };
            part.timed(|count| (0..count).map(once).sum())
        };
        Row::new(1, body).of(self.look_ups)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{TINY, all_forms};
    use super::*;

    /// The distinct sets of the first cache, and the distinct lines, that a ring goes through.
    fn sets_and_lines(words: &Words, first: usize, last: usize) -> (usize, usize, usize) {
        let (mut sets, mut lines) = (Vec::new(), Vec::new());
        let (mut at, mut objects) = (first, 0);
        loop {
            for word in [at, at + last] {
                let address = &raw const words.words[word] as usize;
                let line = address / TINY.line_bytes as usize;
                lines.push(line);
                sets.push(line % TINY.sets() as usize);
            }
            objects += 1;
            let next = if last == 0 { 0 } else { words.words[at + last] };
            at = (words.words[at] ^ next) as usize;
            if at == first {
                break;
            }
        }
        for list in [&mut sets, &mut lines] {
            list.sort_unstable();
            list.dedup();
        }
        (objects, sets.len(), lines.len())
    }

    #[test]
    fn objects_a_way_apart_share_a_set_and_coloured_ones_do_not() {
        let way_words = TINY.way_bytes() / 8;
        let mut words = Words::new(17 * way_words, &TINY);
        let first = words.ring((0..16).map(|object| object * way_words as usize).collect(), 0);
        assert_eq!(sets_and_lines(&words, first, 0), (16, 1, 16));
        let place = |object: usize| object * way_words as usize + object * TINY.line_words();
        let mut words = Words::new(17 * way_words, &TINY);
        let first = words.ring((0..16).map(place).collect(), 0);
        assert_eq!(sets_and_lines(&words, first, 0), (16, 16, 16));
        all_forms(&*Rings::conflicts(&TINY));
    }

    #[test]
    fn an_object_that_begins_in_the_middle_of_a_line_has_two() {
        for (offset, lines) in [(0, 100), (4, 200)] {
            let mut words = Words::new(303 * 8, &TINY);
            let places = (0..100).map(|object| 24 * object + offset).collect();
            let first = words.ring(places, 7);
            assert_eq!(sets_and_lines(&words, first, 7), (100, 16, lines));
        }
        all_forms(&*Rings::lines(&TINY));
    }

    #[test]
    fn a_list_and_an_array_have_the_same_elements() {
        let geometry = &TINY;
        let elements = (2 * geometry.second_bytes / geometry.line_bytes) as usize;
        let mut words = Words::new((elements * 8) as u64, geometry);
        let first = words.ring((0..elements).map(|element| element * 8).collect(), 0);
        assert_eq!(sets_and_lines(&words, first, 0), (elements, 16, elements));
        all_forms(&*Walk::boxed(geometry));
        all_forms(&*Replaced::boxed(geometry));
    }

    #[test]
    fn every_form_of_a_sweep_reads_as_much() {
        // The load asserts it.
        all_forms(&*Sweep::boxed(&TINY));
    }
}
