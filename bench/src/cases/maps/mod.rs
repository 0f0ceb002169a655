//! Maps as their users use them: a guard for each operation, keys that are found in no order.
//!
//! - `mixed`: look-ups and updates in a share that is given ([`mixed::measure`]).
//! - [`growth`]: what single insertions take while a map grows. [`memory`]: what an entry takes.
//! - [`published`]: the mixes of the crate `bustle`.
//! - [`locked`]: a hash table under one lock or several.
//!
//! A rival has a map for any key and any hash function. All are given the same hash function, but
//! for the case of their own ones. Keys are words, or strings of 20 bytes; a thread makes the next
//! one in memory of its own, so that no look-up waits for where keys lie. A value says which key it
//! is of, and every look-up checks that.

pub(crate) mod growth;
pub(crate) mod locked;
pub(crate) mod memory;
mod mixed;
#[cfg(feature = "all-rivals")]
mod published;

use std::fmt::Debug;
use std::hash::{BuildHasher, Hash};
use std::marker::PhantomData;

use foldhash::fast::FixedState;
use hdrhistogram::Histogram;

pub(crate) use self::mixed::{Shape, measure, operations_in};
use crate::clock::{TICKS_MAX, histogram};
use crate::slices::Scene;

/// The hash function that all maps are given.
pub(crate) type Fast = FixedState;

/// A hash function that a map can be made with.
pub(crate) trait Hashes: BuildHasher + Clone + Default + Send + Sync + 'static {}

impl<S: BuildHasher + Clone + Default + Send + Sync + 'static> Hashes for S {}

/// What a map is searched for.
pub(crate) trait Key:
    Clone + Debug + Default + Eq + Hash + Ord + quiescence::Weigh + Send + Sync + 'static
{
    /// Makes it the key of this number, without allocating where it did so before.
    fn set(&mut self, number: u64);

    /// The key of this number.
    fn of(number: u64) -> Self {
        let mut key = Self::default();
        key.set(number);
        key
    }
}

impl Key for u64 {
    /// No two numbers have the same key, and none its own.
    #[inline(always)]
    fn set(&mut self, number: u64) {
        *self = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

impl Key for Box<[u8]> {
    fn set(&mut self, number: u64) {
        *self = number.to_be_bytes().into();
    }
}

impl Key for String {
    #[inline(always)]
    fn set(&mut self, number: u64) {
        let mut word = 0_u64;
        word.set(number);
        let mut bytes = *b"key:0000000000000000";
        for (place, byte) in bytes[4..].iter_mut().enumerate() {
            *byte = b"0123456789abcdef"[(word >> (60 - 4 * place)) as usize & 15];
        }
        self.clear();
        self.push_str(str::from_utf8(&bytes).expect("digits are ASCII"));
    }
}

/// A map, mostly of words.
///
/// Each method does what users of the map would do for it, each in a section of its own.
#[cfg_attr(not(any(test, feature = "all-rivals")), expect(dead_code, reason = "some are bustle's"))]
pub(crate) trait Map<K: Key, V = u64>: Send + Sync + Sized + 'static {
    /// Whether the key matters. If not, those who measure do not touch keys either.
    const KEYED: bool = true;
    /// What a thread holds while it works: mostly nothing.
    type Thread: 'static;

    /// An empty map that has room for so many entries, if it can be told.
    fn with_capacity(_entries: usize) -> Self {
        unreachable!("a map that is made of its entries")
    }

    /// A map of these entries.
    fn of(entries: impl Iterator<Item = (K, V)>) -> Self {
        let map = Self::with_capacity(entries.size_hint().0);
        let mut thread = map.thread();
        for (key, value) in entries {
            assert!(map.insert(&mut thread, &key, value), "keys are different");
        }
        map
    }

    /// Registers the calling thread.
    fn thread(&self) -> Self::Thread;
    /// Hands the value of a key to `look`, inside the section. Nothing if there is none.
    fn read<R>(&self, thread: &mut Self::Thread, key: &K, look: impl FnOnce(&V) -> R) -> Option<R>;

    /// Gives a key a value, and says whether it had none. This or [`put`](Self::put) is its own.
    #[inline(always)]
    fn insert(&self, thread: &mut Self::Thread, key: &K, value: V) -> bool {
        !self.put(thread, key, value)
    }

    /// Gives a key another value if it has one; says whether it had.
    fn update(&self, _thread: &mut Self::Thread, _key: &K, _value: V) -> bool
    where
        V: Copy,
    {
        unreachable!("a map that is not asked for it")
    }

    /// Removes a key, and says whether it was there.
    fn remove(&self, _thread: &mut Self::Thread, _key: &K) -> bool {
        unreachable!("a map whose keys stay")
    }

    /// The value of a key.
    #[inline(always)]
    fn get(&self, thread: &mut Self::Thread, key: &K) -> Option<V>
    where
        V: Copy,
    {
        self.read(thread, key, |value| *value)
    }

    /// Gives a key a value, and says whether it had one, as it mostly has.
    #[inline(always)]
    fn put(&self, thread: &mut Self::Thread, key: &K, value: V) -> bool {
        !self.insert(thread, key, value)
    }

    /// Gives a key another value, which it has unless it is removed meanwhile.
    #[inline(always)]
    fn replace(&self, thread: &mut Self::Thread, key: &K, value: V) {
        self.put(thread, key, value);
    }

    /// The same, where a map may ask for the value more than once.
    #[inline(always)]
    fn overwrite(&self, thread: &mut Self::Thread, key: &K, value: V)
    where
        V: Copy,
    {
        self.replace(thread, key, value);
    }

    /// Whether a key is there that no other thread changes.
    #[inline(always)]
    fn contains(&self, thread: &mut Self::Thread, key: &K) -> bool {
        self.read(thread, key, |_| ()).is_some()
    }

    /// Inserts the entries of these numbers, which are not there yet, all at once if that is what
    /// users do.
    fn fill(&self, numbers: std::ops::Range<u64>)
    where
        V: From<u64>,
    {
        let mut thread = self.thread();
        let mut key = K::of(numbers.start);
        for number in numbers {
            key.set(number);
            assert!(self.insert(&mut thread, &key, number.into()), "numbers have different keys");
        }
    }

    /// Called every few operations, outside every section.
    fn pause(_thread: &mut Self::Thread) {}

    /// Frees what was replaced or removed, as far as the map can be asked to.
    fn flush(&self) {}
}

/// [`Map`] for a type that has keys, values and a hash function as parameters, by an expression for
/// each method; or for keys and values of these bounds. Its threads hold nothing.
macro_rules! maps {
    ($map:ident $(of $copy:ident values)?; $($methods:tt)*) => {
        $crate::cases::maps::maps! {
            $map of K, V, where [
                K: $crate::cases::maps::Key,
                V: $($copy +)? ::quiescence::Weigh + Send + Sync + 'static,
            ];
            $($methods)*
        }
    };
    (
        $map:ident of $key:ident, $value:ident, where [$($bounds:tt)*];
        read: |$reads:ident, $wanted:ident, $look:ident| $read:expr;
        insert: |$inserts:ident, $new:ident, $first:ident| $insert:expr;
        update: |$updates:ident, $known:ident, $other:ident| $update:expr;
        remove: |$removes:ident, $old:ident| $remove:expr;
        $(replace: |$replaces:ident, $present:ident, $second:ident| $replace:expr;)?
        $(overwrite: |$writes:ident, $lasting:ident, $third:ident| $overwrite:expr;)?
        $(contains: |$has:ident, $sought:ident| $contains:expr;)?
        $(flush: |$flushes:pat_param| $flush:expr;)?
    ) => {
        impl<$($bounds)* S: $crate::cases::maps::Hashes> $crate::cases::maps::Map<$key, $value>
            for $map<$key, $value, S>
        {
            type Thread = ();

            fn with_capacity(entries: usize) -> Self {
                Self::with_capacity_and_hasher(entries, S::default())
            }

            fn thread(&self) {}

            #[inline(always)]
            fn read<R>(
                &self,
                (): &mut (),
                $wanted: &$key,
                $look: impl FnOnce(&$value) -> R,
            ) -> Option<R> {
                let $reads = self;
                $read
            }

            #[inline(always)]
            fn insert(&self, (): &mut (), $new: &$key, $first: $value) -> bool {
                let $inserts = self;
                $insert
            }

            #[inline(always)]
            fn update(&self, (): &mut (), $known: &$key, $other: $value) -> bool
            where
                $value: Copy,
            {
                let $updates = self;
                $update
            }

            #[inline(always)]
            fn remove(&self, (): &mut (), $old: &$key) -> bool {
                let $removes = self;
                $remove
            }

            $(
                #[inline(always)]
                fn replace(&self, (): &mut (), $present: &$key, $second: $value) {
                    let $replaces = self;
                    $replace;
                }
            )?

            $(
                #[inline(always)]
                fn overwrite(&self, (): &mut (), $lasting: &$key, $third: $value)
                where
                    $value: Copy,
                {
                    let $writes = self;
                    $overwrite;
                }
            )?

            $(
                #[inline(always)]
                fn contains(&self, (): &mut (), $sought: &$key) -> bool {
                    let $has = self;
                    $contains
                }
            )?

            $(
                fn flush(&self) {
                    let $flushes = self;
                    $flush;
                }
            )?
        }
    };
}
pub(crate) use maps;

/// Which keys, hashed how.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Keys {
    /// Words, by the hash function that all are given.
    Words,
    /// Strings of 20 bytes, by the same.
    Strings,
    /// Words, by each map's own hash function.
    OwnHash,
}

/// A measurement by the crate `bustle`, where that is compiled in: see `published`.
type Bustle = fn([u8; 4], f64, u8, usize, u64) -> f64;

/// Makes an empty map with room for so many entries.
type Make = fn(usize) -> Box<dyn Table>;

/// The maps of a rival.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kinds {
    /// By [`Keys`]; none of strings, for a map of words.
    makes: [Option<Make>; 3],
    pub(crate) bustle: Bustle,
}

impl Kinds {
    pub(crate) const fn of<M: Map<u64>, OwnHash: Map<u64>, Strings: Map<String>>() -> Self {
        let mut kinds = Self::of_words::<M, OwnHash>();
        kinds.makes[Keys::Strings as usize] = Some(Filled::<Strings, String>::boxed);
        kinds
    }

    pub(crate) const fn of_words<M: Map<u64>, OwnHash: Map<u64>>() -> Self {
        Self {
            makes: [Some(Filled::<M, u64>::boxed), None, Some(Filled::<OwnHash, u64>::boxed)],
            #[cfg(feature = "all-rivals")]
            bustle: published::measure::<M>,
            #[cfg(not(feature = "all-rivals"))]
            bustle: |_, _, _, _, _| f64::NAN,
        }
    }

    pub(crate) fn has(self, keys: Keys) -> bool {
        self.makes[keys as usize].is_some()
    }

    /// An empty map with room for so many entries.
    fn make(self, keys: Keys, entries: usize) -> Box<dyn Table> {
        self.makes[keys as usize].expect("it has such keys")(entries)
    }
}

/// A map that threads work on: what is compiled once for each kind.
pub(crate) trait Table: Send + Sync {
    /// Inserts the entries of these numbers.
    fn fill(&self, numbers: std::ops::Range<u64>);
    /// Inserts the entries of these numbers one by one, and records what each took, in ticks.
    fn fill_timed(&self, numbers: std::ops::Range<u64>, ticks: &mut Histogram<u64>);
    /// Does this share of the work, in the calling thread, and records what each operation took, if
    /// that is wanted, in ticks.
    fn work(&self, share: &mixed::Share, ticks: Option<&mut Histogram<u64>>);
    /// Frees what was replaced or removed, as far as the map can be asked to.
    fn flush(&self);

    /// Fails if the map, which is empty, does not do what [`Map`] says.
    #[cfg(test)]
    fn keeps_its_word(&self, name: &str);
}

/// What all threads of a scene have recorded.
fn recorded(scene: &Scene<Histogram<u64>>) -> Histogram<u64> {
    let mut all = histogram(TICKS_MAX);
    scene.played.iter().for_each(|played| all += &played.result);
    all
}

/// A map with the type of its keys.
struct Filled<M, K>(M, PhantomData<fn() -> K>);

impl<M: Map<K>, K: Key> Filled<M, K> {
    fn boxed(entries: usize) -> Box<dyn Table> {
        Box::new(Self(M::with_capacity(entries), PhantomData))
    }
}

impl<M: Map<K>, K: Key> Table for Filled<M, K> {
    fn fill(&self, numbers: std::ops::Range<u64>) {
        self.0.fill(numbers);
    }

    fn fill_timed(&self, numbers: std::ops::Range<u64>, ticks: &mut Histogram<u64>) {
        growth::fill::<K, M>(&self.0, numbers, ticks);
    }

    fn work(&self, share: &mixed::Share, ticks: Option<&mut Histogram<u64>>) {
        match ticks {
            Some(ticks) => mixed::work::<K, M, true>(&self.0, share, ticks),
            None => mixed::work::<K, M, false>(&self.0, share, &mut histogram(TICKS_MAX)),
        }
    }

    fn flush(&self) {
        self.0.flush();
    }

    #[cfg(test)]
    fn keeps_its_word(&self, name: &str) {
        tests::keeps_its_word(&self.0, name);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::cases::object::turn;
    use crate::rivals;

    /// A map that forgets what is put into it.
    pub(crate) struct Forgetful;

    impl<K: Key, V: 'static> Map<K, V> for Forgetful {
        type Thread = ();

        fn with_capacity(_: usize) -> Self {
            Self
        }

        fn thread(&self) {}

        fn read<R>(&self, (): &mut (), _: &K, _: impl FnOnce(&V) -> R) -> Option<R> {
            None
        }

        fn insert(&self, (): &mut (), _: &K, _: V) -> bool {
            true
        }
    }

    #[test]
    fn numbers_have_different_keys_of_one_length() {
        use std::collections::BTreeSet;
        let (words, strings): (BTreeSet<_>, BTreeSet<_>) =
            (0..1000).map(|number| (u64::of(number), String::of(number))).unzip();
        assert!(strings.iter().all(|key| key.len() == 20), "{strings:?}");
        assert_eq!((words.len(), strings.len()), (1000, 1000));
    }

    /// What each map of each rival does, step by step.
    pub(super) fn keeps_its_word<K: Key, M: Map<K>>(map: &M, name: &str) {
        let mut thread = map.thread();
        let thread = &mut thread;
        map.fill(0..500);
        for number in 0..1000 {
            let key = K::of(number);
            let expected = (number < 500).then_some(number);
            assert_eq!(map.get(thread, &key), expected, "{name}");
            assert_eq!(map.contains(thread, &key), expected.is_some(), "{name}");
            assert_eq!(map.update(thread, &key, number + 1), expected.is_some(), "{name}");
        }
        for number in 0..1000 {
            let key = K::of(number);
            let was_there = number < 500;
            assert_eq!(map.get(thread, &key), was_there.then_some(number + 1), "{name}");
            assert_eq!(map.insert(thread, &key, number + 2), !was_there, "{name}");
            map.replace(thread, &key, number + 2);
            map.overwrite(thread, &key, number + 3);
            assert_eq!(map.get(thread, &key), Some(number + 3), "{name}");
            assert!(map.remove(thread, &key), "{name}");
            assert!(!map.remove(thread, &key), "{name}");
            assert_eq!(map.get(thread, &key), None, "{name}");
        }
        map.flush();
    }

    /// The maps of each rival, of those keys that it has, with what is said of the keys.
    pub(super) fn with<T: Copy, const N: usize>(
        all: [(Keys, T); N],
    ) -> impl Iterator<Item = (&'static str, Kinds, Keys, T)> {
        rivals::that(|rival| rival.maps).flat_map(move |(name, kinds)| {
            let those = all.into_iter().filter(move |(keys, _)| kinds.has(*keys));
            those.map(move |(keys, of)| (name, kinds, keys, of))
        })
    }

    #[test]
    fn every_map_does_what_it_says() {
        let _turn = turn();
        assert!(rivals::that(|rival| rival.maps).count() >= 6);
        let all = [(Keys::Words, 0), (Keys::OwnHash, 100), (Keys::Strings, 2000)];
        for (name, kinds, keys, room) in with(all) {
            kinds.make(keys, room).keeps_its_word(name);
        }
    }
}
