//! Maps: the library's own, and the intrusive hash table, as its users would wrap it.

use std::collections::hash_map::RandomState;
use std::ptr::NonNull;

use quiescence::collections::id_map::Id;
use quiescence::collections::{CopyMap, HashMap, IdMap};
use quiescence::intrusive::{Cursor, HashTable, Node, TableOptions};
use quiescence::{Domain, Weigh, tag::Global};

use crate::cases::maps::{Hashes, Key, Map, maps};
use crate::shapes::Ids;

/// An entry, which is its own node.
#[repr(C)]
struct Entry<K> {
    // First, so that its address is the entry's.
    node: Node,
    key: K,
    value: u64,
}

impl<K: Key> quiescence::Weigh for Entry<K> {
    const OWNS: bool = K::OWNS;

    fn owned(&self) -> usize {
        self.key.owned()
    }
}

/// A table of boxes, which are the table's from when they are added until they are retired.
pub(super) struct Nodes<K: Key, S = RandomState> {
    table: HashTable<Domain<Global>>,
    hashes: S,
    entries: std::marker::PhantomData<Box<Entry<K>>>,
}

impl<K: Key, S: Hashes> Nodes<K, S> {
    #[inline(always)]
    fn hash(&self, key: &K) -> usize {
        self.hashes.hash_one(key) as usize
    }

    /// # Safety
    /// The node is one of this table, in a section that it was found in.
    #[inline(always)]
    unsafe fn entry<'s>(node: NonNull<Node>) -> &'s Entry<K> {
        // SAFETY: by the contract; it is the first field of an entry, which is not written to.
        unsafe { node.cast::<Entry<K>>().as_ref() }
    }

    #[inline(always)]
    fn matches(key: &K) -> impl Fn(NonNull<Node>) -> bool {
        // SAFETY: the table shows nodes of its own, in sections.
        move |node| unsafe { Self::entry(node) }.key == *key
    }

    /// # Safety
    /// In a section, from which the cursor does not come out.
    #[inline(always)]
    unsafe fn find(&self, key: &K) -> Cursor {
        // SAFETY: by the contract, in a section.
        unsafe { self.table.lookup(self.hash(key), Self::matches(key)) }
    }

    fn boxed(key: &K, value: u64) -> NonNull<Node> {
        let entry = Box::new(Entry { node: Node::new(), key: key.clone(), value });
        NonNull::from(Box::leak(entry)).cast()
    }
}

/// # Safety
/// The node is of a table of such entries, was deleted or replaced by the caller, and is retired
/// once.
#[inline(always)]
unsafe fn retire<K: Key>(node: NonNull<Node>) {
    // SAFETY: from `boxed`, and by the contract the caller's.
    let entry = unsafe { Box::from_raw(node.cast::<Entry<K>>().as_ptr()) };
    quiescence::retire(entry).expect("outside of sections there is always room");
}

impl<K: Key, S: Hashes> Map<K> for Nodes<K, S> {
    type Thread = ();

    fn with_capacity(entries: usize) -> Self {
        let options =
            TableOptions { buckets: entries.max(1).next_power_of_two(), ..TableOptions::default() };
        let table = HashTable::new(Domain::global(), options);
        Self {
            table: table.expect("there is memory for it"),
            hashes: S::default(),
            entries: std::marker::PhantomData,
        }
    }

    fn thread(&self) {}

    #[inline(always)]
    fn read<R>(&self, (): &mut (), key: &K, look: impl FnOnce(&u64) -> R) -> Option<R> {
        let _section = quiescence::read();
        // SAFETY: in the section.
        let found = unsafe { self.find(key) };
        // SAFETY: found in the section, which has not ended.
        found.node().map(|node| look(&unsafe { Self::entry(node) }.value))
    }

    #[inline(always)]
    fn insert(&self, (): &mut (), key: &K, value: u64) -> bool {
        let new = Self::boxed(key, value);
        let section = quiescence::read();
        // SAFETY: in the section; the new node is in no table.
        let old = unsafe { self.table.add_replace(self.hash(key), new, Self::matches(key)) };
        drop(section);
        // SAFETY: this thread has replaced it.
        old.inspect(|old| unsafe { retire::<K>(*old) }).is_none()
    }

    #[inline(always)]
    fn update(&self, (): &mut (), key: &K, value: u64) -> bool {
        let new = Self::boxed(key, value);
        let section = quiescence::read();
        let replaced = loop {
            // SAFETY: in the section.
            let found = unsafe { self.find(key) };
            let Some(old) = found.node() else { break None };
            // SAFETY: in the section; the hashes are equal, since the keys are.
            if unsafe { self.table.replace(old, new) } {
                break Some(old);
            }
        };
        drop(section);
        match replaced {
            // SAFETY: this thread has replaced it.
            Some(old) => unsafe { retire::<K>(old) },
            // SAFETY: from `boxed`, and in no table.
            None => drop(unsafe { Box::from_raw(new.cast::<Entry<K>>().as_ptr()) }),
        }
        replaced.is_some()
    }

    #[inline(always)]
    fn remove(&self, (): &mut (), key: &K) -> bool {
        let section = quiescence::read();
        // SAFETY: in the section.
        let found = unsafe { self.find(key) };
        // SAFETY: found in the section, in this table.
        let deleted = found.node().filter(|node| unsafe { self.table.delete(*node) });
        drop(section);
        // SAFETY: this thread has deleted it.
        deleted.inspect(|node| unsafe { retire::<K>(*node) }).is_some()
    }

    fn flush(&self) {
        quiescence::barrier();
    }
}

impl<K: Key, S> Drop for Nodes<K, S> {
    fn drop(&mut self) {
        let mut all = Vec::new();
        let section = quiescence::read();
        // SAFETY: in the section.
        let mut at = unsafe { self.table.first() };
        while let Some(node) = at.node() {
            // SAFETY: found in the section, in this table.
            if unsafe { self.table.delete(node) } {
                all.push(node);
            }
            // SAFETY: in the section.
            at = unsafe { self.table.next(at) };
        }
        drop(section);
        for node in all {
            // Not freed at once: the table's worker may be at the list, to resize it.
            // SAFETY: deleted above.
            unsafe { retire::<K>(node) };
        }
        // What is measured next is not to find this memory freed meanwhile.
        quiescence::barrier();
    }
}

maps! {
    HashMap;
    read: |map, key, look| map.read().get(key).map(look);
    insert: |map, key, value| map.insert(key.clone(), value);
    update: |map, key, value| map.update(key, |_| value);
    remove: |map, key| map.remove(key);
    // An update hands on a key that owns memory; to copy one that owns none takes less.
    overwrite: |map, key, value| match K::OWNS {
        true => map.update(key, |_| value),
        false => map.insert(key.clone(), value),
    };
    flush: |_| quiescence::barrier();
}

maps! {
    CopyMap of u64, u64, where [];
    read: |map, key, look| map.get(key).as_ref().map(look);
    insert: |map, key, value| map.insert(*key, value).is_none();
    update: |map, key, value| map.update(key, |_| value).is_some();
    remove: |map, key| map.remove(key).is_some();
}

impl<V: Weigh + Send + Sync + 'static> Ids<V> for IdMap<V> {
    fn new() -> Self {
        Self::new()
    }

    #[inline]
    fn insert(&self, value: V) -> u64 {
        self.insert(value).to_bits()
    }

    #[inline]
    fn remove(&self, id: u64) -> bool {
        Id::from_bits(id).is_some_and(|id| self.remove(id))
    }

    #[inline]
    fn read<R>(&self, id: u64, look: impl FnOnce(&V) -> R) -> Option<R> {
        self.read().get(Id::from_bits(id)?).map(look)
    }

    fn flush(&self) {
        quiescence::barrier();
    }
}
