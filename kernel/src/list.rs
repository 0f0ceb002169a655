//! A list whose nodes are the kernel's own objects: readers walk it while an updater changes it.
//!
//! **Invariant: a reader that has come to a node goes on from there to the list's end, over nodes
//! that are whole, whatever an updater does meanwhile.** So a node is linked only when what it
//! holds is written; one that was removed keeps its link to the next; and it is changed, linked
//! again or freed only a grace period later.
//!
//! After the kernel's `list_add_rcu()` and `list_del_rcu()`, without a cycle: so a list may move,
//! if nobody reads it.

use core::marker::PhantomData;
use core::ptr::{self, NonNull};

use crate::data::{Domain, Of};
use crate::sync::{AtomicPtr, Ordering, constant};

/// Embedded in a node.
#[derive(Debug)]
pub struct Link {
    next: AtomicPtr<Link>,
    /// The updater's; [`NOWHERE`] in no list.
    previous: AtomicPtr<Link>,
}

const NOWHERE: *mut Link = ptr::dangling_mut();

impl Link {
    constant! {
        /// Creates a link that is in no list.
        pub fn new() -> Self {
            Self { next: AtomicPtr::new(ptr::null_mut()), previous: AtomicPtr::new(NOWHERE) }
        }
    }
}

impl Default for Link {
    fn default() -> Self {
        Self::new()
    }
}

/// An object with a [`Link`] in it.
///
/// # Safety
/// At this offset there is one, which nothing else accesses.
///
/// ```
/// use kernel::{Head, Link, Linked};
///
/// struct Route {
///     link: Link,
///     head: Head,
///     prefix: u32,
/// }
///
/// // SAFETY: the field is there, and private.
/// unsafe impl Linked for Route {
///     const OFFSET: usize = core::mem::offset_of!(Route, link);
/// }
/// ```
pub unsafe trait Linked: Sync {
    /// Where the link is, in bytes from the object's beginning.
    const OFFSET: usize;
}

/// A list of nodes that belong to the kernel. Readers take no lock; one updater at a time changes
/// it, under a lock of the kernel's.
///
/// A list of one type is no list of another one, also if they differ in a lifetime only. Of these
/// the first compiles alone:
///
/// ```
/// # use kernel::{Link, Linked, RcuList};
///
/// struct Name<'n>(Link, &'n str);
/// // SAFETY: the field is there, and private.
/// unsafe impl Linked for Name<'_> {
///     const OFFSET: usize = core::mem::offset_of!(Name<'_>, 0);
/// }
///
/// fn same<'l, 'n, D>(list: &'l RcuList<Name<'n>, D>) -> &'l RcuList<Name<'n>, D> {
///     list
/// }
/// ```
/// ```compile_fail
/// # use kernel::{Link, Linked, RcuList};
/// #
/// # struct Name<'n>(Link, &'n str);
/// # // SAFETY: the field is there, and private.
/// # unsafe impl Linked for Name<'_> {
/// #     const OFFSET: usize = core::mem::offset_of!(Name<'_>, 0);
/// # }
/// fn longer<'l, 'n, D>(list: &'l RcuList<Name<'n>, D>) -> &'l RcuList<Name<'static>, D> {
///     list
/// }
/// ```
/// ```compile_fail
/// # use kernel::{Link, Linked, RcuList};
/// #
/// # struct Name<'n>(Link, &'n str);
/// # // SAFETY: the field is there, and private.
/// # unsafe impl Linked for Name<'_> {
/// #     const OFFSET: usize = core::mem::offset_of!(Name<'_>, 0);
/// # }
/// fn shorter<'l, 'n, D>(list: &'l RcuList<Name<'static>, D>) -> &'l RcuList<Name<'n>, D> {
///     list
/// }
/// ```
pub struct RcuList<T, D> {
    /// The first node is its next one, and the last one its previous one.
    ends: Link,
    /// A list of `T`s and of no others, since it hands out what was put in through a shared
    /// reference; and of that domain alone.
    links: Of<(T, D)>,
}

impl<T, D> core::fmt::Debug for RcuList<T, D> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("RcuList").finish_non_exhaustive()
    }
}

impl<T, D> Default for RcuList<T, D> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, D> RcuList<T, D> {
    constant! {
        /// Creates an empty list.
        pub fn new() -> Self {
            let next = AtomicPtr::new(ptr::null_mut());
            let previous = AtomicPtr::new(ptr::null_mut());
            Self { ends: Link { next, previous }, links: PhantomData }
        }
    }

    /// A link of this list, or what stands for it before the first and after the last node.
    ///
    /// # Safety
    /// The pointer is null, or that of a node in the list, which stays as long as the reference.
    unsafe fn link(&self, link: *mut Link) -> &Link {
        // SAFETY: the caller's.
        unsafe { link.as_ref() }.unwrap_or(&self.ends)
    }

    /// Links two neighbours.
    ///
    /// # Safety
    /// Both are null or in the list.
    unsafe fn join(&self, previous: *mut Link, next: *mut Link) {
        // Relaxed: the updater's own.
        // SAFETY: the caller's.
        unsafe { self.link(next) }.previous.store(previous, Ordering::Relaxed);
        // Release: pairs with the Acquire of a walk [KN-9], which sees the next node whole, whoever
        // has linked it first.
        // SAFETY: the caller's.
        unsafe { self.link(previous) }.next.store(next, Ordering::Release);
    }
}

fn link_of<T: Linked>(node: NonNull<T>) -> *mut Link {
    node.as_ptr().wrapping_byte_add(T::OFFSET).cast()
}

impl<T: Linked, D: Domain> RcuList<T, D> {
    /// Adds a node at the front.
    ///
    /// # Safety
    /// - The pointer is one to the whole node, which is in no list.
    /// - Until a grace period of `D` has ended since it was [removed](Self::remove), or since all
    ///   references to the list have gone, the node is not linked again, here or elsewhere, and not
    ///   changed or moved, but for what is atomic and not its link.
    /// - Nobody else changes the list meanwhile.
    ///
    /// # Panics
    /// If the node is found in a list.
    pub unsafe fn push_front(&self, node: NonNull<T>) {
        // SAFETY: the caller's; the neighbours are in the list.
        // Relaxed, here and below: the updater's own.
        unsafe { self.insert(node, ptr::null_mut(), self.ends.next.load(Ordering::Relaxed)) };
    }

    /// Adds a node at the end.
    ///
    /// # Safety
    /// As for [`push_front`](Self::push_front).
    ///
    /// # Panics
    /// As there.
    pub unsafe fn push_back(&self, node: NonNull<T>) {
        // SAFETY: the caller's; the neighbours are in the list.
        unsafe { self.insert(node, self.ends.previous.load(Ordering::Relaxed), ptr::null_mut()) };
    }

    /// # Safety
    /// As for [`push_front`](Self::push_front); the neighbours are such, or null.
    unsafe fn insert(&self, node: NonNull<T>, previous: *mut Link, next: *mut Link) {
        let new = link_of(node);
        // SAFETY: the node is the caller's.
        let is_free = unsafe { self.link(new) }.previous.load(Ordering::Relaxed) == NOWHERE;
        assert!(is_free, "the node is in a list");
        // From the end: readers find the node when its own link is right.
        // SAFETY: the node is the caller's, and the neighbours are in the list.
        unsafe { self.join(new, next) };
        // SAFETY: as above.
        unsafe { self.join(previous, new) };
    }

    /// Takes a node out. Readers may be at it until a grace period has ended. The pointer may come
    /// from a reference, such as one that a walk has found. Returns the one that was pushed: to the
    /// whole node, so a callback may free it.
    ///
    /// # Safety
    /// It is in this list. Nobody else changes the list meanwhile.
    ///
    /// # Panics
    /// If it is found removed already, or never pushed.
    pub unsafe fn remove(&self, node: NonNull<T>) -> NonNull<T> {
        // SAFETY: the caller's.
        let link = unsafe { self.link(link_of(node)) };
        // Relaxed: the updater's own, and its link stays for readers.
        let next = link.next.load(Ordering::Relaxed);
        let previous = link.previous.swap(NOWHERE, Ordering::Relaxed);
        assert!(previous != NOWHERE, "the node is in no list");
        // SAFETY: it is in the list, as the node is.
        let pushed = unsafe { self.link(previous) }.next.load(Ordering::Relaxed);
        // SAFETY: they are in the list, as the node is.
        unsafe { self.join(previous, next) };
        // SAFETY: it was made of such a pointer.
        unsafe { NonNull::new_unchecked(pushed.wrapping_byte_sub(T::OFFSET).cast()) }
    }

    /// Walks the list in a section that has begun.
    pub fn iter<'a>(&'a self, _: &'a D::Section) -> RcuListIter<'a, T> {
        // SAFETY: what is removed meanwhile stays until the section ends, as was promised.
        unsafe { self.walk() }
    }

    /// Walks it without one: as its updater, or in a section of another kind.
    ///
    /// # Safety
    /// During `'a`, no node is changed, freed or linked again. The updater may remove nodes as it
    /// walks, also the one that it is at, but not free that: the walk goes on from there.
    pub unsafe fn walk<'a>(&'a self) -> RcuListIter<'a, T> {
        RcuListIter { next: &self.ends.next, nodes: PhantomData }
    }
}

/// The nodes of an [`RcuList`], from the one at the front.
#[derive(Debug)]
pub struct RcuListIter<'a, T> {
    next: &'a AtomicPtr<Link>,
    nodes: PhantomData<&'a T>,
}

impl<'a, T: Linked> Iterator for RcuListIter<'a, T> {
    type Item = &'a T;

    fn next(&mut self) -> Option<&'a T> {
        // Acquire: pairs with the Release of `join` [KN-9]: the node is seen whole.
        let link = self.next.load(Ordering::Acquire);
        // SAFETY: it was in the list in this walk, so it stays during `'a`.
        self.next = &unsafe { link.as_ref() }?.next;
        // SAFETY: it was linked by a pointer to the whole node.
        Some(unsafe { &*link.wrapping_byte_sub(T::OFFSET).cast() })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::boxed::Box;
    use std::vec::Vec;

    use grace::limit::Zone;

    use super::*;
    use crate::head::{Head, Run};
    use crate::misuse::Refused;

    struct Still;

    // SAFETY: there is one thread, and nothing is freed.
    unsafe impl Domain for Still {
        type Section = ();

        fn section() {}

        unsafe fn call(_: NonNull<Head>, _: Run) -> Result<Zone, Refused> {
            Err(Refused::Offline)
        }
    }

    #[derive(Debug)]
    struct Node {
        number: u32,
        link: Link,
    }

    // SAFETY: the field is there, and the list's alone.
    unsafe impl Linked for Node {
        const OFFSET: usize = core::mem::offset_of!(Node, link);
    }

    type List = RcuList<Node, Still>;

    fn nodes() -> [Node; 4] {
        [0, 1, 2, 3].map(|number| Node { number, link: Link::new() })
    }

    fn numbers(list: &List) -> Vec<u32> {
        list.iter(&()).map(|node| node.number).collect()
    }

    #[test]
    fn nodes_are_walked_from_the_front_whatever_is_removed() {
        let (list, nodes) = (List::new(), nodes());
        let nodes = nodes.each_ref().map(NonNull::from);
        assert!(numbers(&list).is_empty());
        for node in [2, 1] {
            // SAFETY: it is in no list.
            unsafe { list.push_front(nodes[node]) };
        }
        for node in [3, 0] {
            // SAFETY: it is in no list.
            unsafe { list.push_back(nodes[node]) };
        }
        assert_eq!(numbers(&list), [1, 2, 3, 0]);
        for (node, left) in [(2, &[1, 3, 0][..]), (0, &[1, 3]), (1, &[3]), (3, &[])] {
            // SAFETY: it is in the list.
            unsafe { list.remove(nodes[node]) };
            assert_eq!(numbers(&list), left);
        }
        // SAFETY: it is in no list any more, and nobody reads.
        unsafe { list.push_back(nodes[2]) };
        let moved = list;
        assert_eq!(numbers(&moved), [2]);
    }

    #[test]
    fn a_node_that_a_walk_has_found_is_freed_by_what_its_removal_returns() {
        let list = List::new();
        for node in nodes() {
            // SAFETY: it is in no list.
            unsafe { list.push_back(NonNull::from(Box::leak(Box::new(node)))) };
        }
        for number in [2, 0, 3, 1] {
            let found = list.iter(&()).find(|node| node.number == number).unwrap();
            // SAFETY: it is in the list.
            let node = unsafe { list.remove(NonNull::from(found)) };
            // SAFETY: it came from a box, and nobody reads it.
            assert_eq!(unsafe { Box::from_raw(node.as_ptr()) }.number, number);
        }
        assert!(numbers(&list).is_empty());
    }

    #[test]
    #[should_panic(expected = "the node is in no list")]
    fn a_node_is_removed_once() {
        let (list, nodes) = (List::new(), nodes());
        let nodes = nodes.each_ref().map(NonNull::from);
        // SAFETY: they are in no list.
        nodes.iter().for_each(|&node| unsafe { list.push_back(node) });
        // SAFETY: the second time panics.
        (0..2).for_each(|_| _ = unsafe { list.remove(nodes[1]) });
    }

    #[test]
    #[should_panic(expected = "the node is in a list")]
    fn a_node_is_pushed_once() {
        let (list, nodes) = (List::new(), nodes());
        // SAFETY: the second time panics.
        (0..2).for_each(|_| unsafe { list.push_front(NonNull::from(&nodes[0])) });
    }

    #[test]
    fn a_reader_at_a_node_that_is_removed_goes_on_to_the_end() {
        let (list, nodes) = (List::new(), nodes());
        let nodes = nodes.each_ref().map(NonNull::from);
        // SAFETY: they are in no list.
        nodes.iter().for_each(|&node| unsafe { list.push_back(node) });
        let mut walk = list.iter(&());
        assert_eq!(walk.nth(1).map(|node| node.number), Some(1));
        for node in [0, 1] {
            // SAFETY: it is in the list.
            unsafe { list.remove(nodes[node]) };
        }
        assert_eq!(walk.map(|node| node.number).collect::<Vec<_>>(), [2, 3]);
        assert_eq!(numbers(&list), [2, 3]);
    }
}
