//! What one CPU sees of its caches: sets that many objects share, objects that begin in the middle
//! of a line, a list and an array, blocks that come back warm, and a table that a sequential read
//! displaces.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use quiescence::Rcu;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;

use super::{Geometry, Load, prefetch};
use crate::cases::form::Form;
use crate::slices::{Part, Row};

/// Bytes that a form of [`sweep`] reads through, again and again.
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

    /// Links these places, given in words from the beginning, to a ring in a random order: the word
    /// of a place says where the next is.
    fn ring(&mut self, mut places: Vec<usize>) -> usize {
        places.shuffle(&mut ChaCha8Rng::seed_from_u64(1));
        places.iter_mut().for_each(|place| *place += self.begin);
        for (number, &place) in places.iter().enumerate() {
            self.words[place] = places[(number + 1) % places.len()] as u64;
        }
        places[0]
    }
}

/// Goes round a ring of these words from its first place; `next` reads where the next place is.
fn go_round(
    words: &Arc<Words>,
    first: usize,
    next: impl Fn(&[u64], usize) -> u64 + Sync + 'static,
) -> Row<'static> {
    let (words, at) = (Arc::clone(words), AtomicUsize::new(first));
    Row::new(1, move |part| {
        // Relaxed: one thread goes round.
        let (words, mut place) = (&*words.words, at.load(Ordering::Relaxed));
        let took = part.times(|| place = next(words, place) as usize);
        at.store(place, Ordering::Relaxed);
        took
    })
}

/// Objects of which the first and the last word are read, each in its place among so many words.
/// Where the next one is depends on both, of which the last is 0.
fn ring(geometry: &Geometry, words: u64, last: usize, places: Vec<usize>) -> Row<'static> {
    let mut words = Words::new(words, geometry);
    let first = words.ring(places);
    let words = Arc::new(words);
    match last {
        0 => go_round(&words, first, |words, at| words[at]),
        _ => go_round(&words, first, move |words, at| words[at] ^ words[at + last]),
    }
}

/// Objects of one word, a whole way apart, as pages are: their first lines share one set, unless
/// each begins at a line of its own colour.
pub(crate) fn conflicts(geometry: &Geometry) -> Load {
    let geometry = *geometry;
    Box::new(move |form| {
        let way_words = geometry.way_bytes() / 8;
        // Four times as many lines as a set has room for, and far fewer than the cache.
        let objects = 4 * geometry.first.ways;
        let place = |object| {
            let colour = if form == Form::Before { 0 } else { object % geometry.sets() };
            (object * way_words) as usize + colour as usize * geometry.line_words()
        };
        ring(&geometry, (objects + 1) * way_words, 0, (0..objects).map(place).collect())
    })
}

/// Objects as long as a line: each on two lines, or each on one.
pub(crate) fn lines(geometry: &Geometry) -> Load {
    let geometry = *geometry;
    Box::new(move |form| {
        let line_words = geometry.line_words();
        // Three quarters of the second cache if each has one line. Three lines apart: an odd
        // number, so that all sets have their share of them.
        let objects = (3 * geometry.second_bytes / geometry.line_bytes / 4) as usize;
        let words = ((3 * objects + 2) * line_words) as u64;
        let begin = if form == Form::Before { line_words / 2 } else { 0 };
        let places = (0..objects).map(|object| 3 * object * line_words + begin);
        ring(&geometry, words, line_words - 1, places.collect())
    })
}

/// Elements of a line each, twice as many as the second cache holds: a list, whose next place is
/// read from an element, and an array, whose next place is known.
pub(crate) fn walk(geometry: &Geometry) -> Load {
    let line_words = geometry.line_words();
    let elements = (2 * geometry.second_bytes / geometry.line_bytes) as usize;
    let mut words = Words::new((elements * line_words) as u64, geometry);
    let first = words.ring((0..elements).map(|element| element * line_words).collect());
    let (begin, last) = (words.begin, words.begin + (elements - 1) * line_words);
    let words = Arc::new(words);
    Box::new(move |form| match form {
        Form::Before => go_round(&words, first, |words, at| words[at]),
        _ => go_round(&words, begin, move |words, at| {
            black_box(words[at]);
            if at == last { begin as u64 } else { (at + line_words) as u64 }
        }),
    })
}

/// A value that is replaced again and again. Blocks of the size that is kept come back from this
/// thread's last objects, still in its cache; those that are a word longer, from the allocator.
pub(crate) fn replaced(form: Form) -> Row<'static> {
    fn stores<const WORDS: usize>() -> Row<'static> {
        let value = Rcu::new([0; WORDS]);
        Row::new(1, move |part| part.times(|| value.store(black_box([1_u64; WORDS]))))
    }
    if form == Form::Before { stores::<65>() } else { stores::<64>() }
}

/// A table in half of the second cache, which is looked up while something else is read
/// from end to end now and then.
pub(crate) fn sweep(geometry: &Geometry) -> Load {
    let line_words = geometry.line_words();
    let look_ups = geometry.second_bytes / 2 / geometry.line_bytes;
    let mut table = Words::new((look_ups + 1) * line_words as u64, geometry);
    let first = table.ring((0..look_ups as usize).map(|line| line * line_words).collect());
    // What is read, twice as long as the second cache.
    let stream = vec![1; (2 * geometry.second_bytes / 8) as usize];
    let shared = Arc::new((table, AtomicUsize::new(first), stream));
    Box::new(move |form| {
        let shared = Arc::clone(&shared);
        let body = move |part: &Part<'_>| {
            let (table, place, stream) = &*shared;
            let once = |_| {
                let sum = black_box(swept(stream, line_words, form));
                assert_eq!(sum, stream.len() as u64, "all was read");
                // Relaxed: one thread looks up.
                let mut at = place.load(Ordering::Relaxed);
                let begin = Instant::now();
                for _ in 0..look_ups {
                    at = table.words[at] as usize;
                }
                place.store(at, Ordering::Relaxed);
                begin.elapsed()
            };
            part.timed(|count| (0..count).map(once).sum())
        };
        Row::new(1, body).of(look_ups)
    })
}

/// The sum of as many words in each form.
fn swept(stream: &[u64], line_words: usize, form: Form) -> u64 {
    let sum = |words: &[u64]| words.iter().fold(0, |sum: u64, word| sum.wrapping_add(*word));
    match form {
        Form::Before => sum(stream),
        Form::Halfway => {
            let mut all = 0;
            for (number, line) in stream.chunks(line_words).enumerate() {
                if let Some(ahead) = stream.get((number + AHEAD_LINES) * line_words) {
                    prefetch::<true, _>(ahead);
                }
                all += sum(line);
            }
            all
        }
        Form::After => {
            let window = (WINDOW_BYTES as usize / 8).min(stream.len());
            let times = stream.len() / window;
            (0..times).map(|_| sum(black_box(&stream[..window]))).sum()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::tests::TINY;
    use super::*;

    /// The distinct sets of the first cache, and the distinct lines, that a ring goes through.
    fn sets_and_lines(words: &Words, first: usize, last: usize) -> (usize, usize, usize) {
        let (mut sets, mut lines) = (BTreeSet::new(), BTreeSet::new());
        let (mut at, mut objects) = (first, 0);
        loop {
            for word in [at, at + last] {
                let address = &raw const words.words[word] as usize;
                let line = address / TINY.line_bytes as usize;
                lines.insert(line);
                sets.insert(line % TINY.sets() as usize);
            }
            objects += 1;
            at = words.words[at] as usize;
            if at == first {
                break;
            }
        }
        (objects, sets.len(), lines.len())
    }

    #[test]
    fn objects_have_the_sets_and_the_lines_that_their_places_say() {
        let way = TINY.way_bytes() as usize / 8;
        let elements = (2 * TINY.second_bytes / TINY.line_bytes) as usize;
        for (what, objects, apart, begin, last, seen) in [
            ("a way apart", 16, way, 0, 0, (16, 1, 16)),
            ("a way apart, coloured", 16, way + TINY.line_words(), 0, 0, (16, 16, 16)),
            ("each on a line", 100, 24, 0, 7, (100, 16, 100)),
            ("from the middle of a line", 100, 24, 4, 7, (100, 16, 200)),
            ("a list, as an array", elements, 8, 0, 0, (elements, 16, elements)),
        ] {
            let mut words = Words::new((objects * apart + begin) as u64, &TINY);
            let first = words.ring((0..objects).map(|object| object * apart + begin).collect());
            assert_eq!(sets_and_lines(&words, first, last), seen, "{what}");
        }
    }
}
