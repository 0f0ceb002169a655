//! A stack of links. Any thread pushes links onto it; one thread at a time takes the whole stack.
//!
//! A push is one compare-exchange. It writes only the pushed link and the top, so the stack is
//! complete at any moment: the thread that takes it waits for no other, and a child process finds
//! all of it. (A queue whose end is exchanged is in two pieces until the link is written. If the
//! pushing thread loses its CPU then, or a child process does not have that thread, no thread can
//! reach what was pushed later.) No operation removes a single link, so there is no ABA problem.
//!
//! While the stack is empty, the top tells what the thread that takes it is doing: it is awake, and
//! checks by itself; it sleeps, and the push that replaces this top wakes it; or there is no such
//! thread. The check and the push are one exchange of one word, so no fence is needed between them
//! [LN-2].
//!
//! Sources: Treiber's stack (1986); a top that says that a thread sleeps, from futex locks (Drepper
//! 2011).

use std::ptr;
use std::sync::atomic::AtomicPtr as PlainPtr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::time::Duration;

use crate::os::futex;
use crate::os::sync::{AtomicPtr, AtomicU32, Tracked, const_unless_loom};

/// The first word of everything that can be pushed.
#[repr(C, align(8))]
#[derive(Debug)]
pub(crate) struct Link {
    /// The next link. Its lowest bit says whether this link is a mark.
    word: PlainPtr<Self>,
    tracked: Tracked<1>,
}

/// In the word of a link: this link is a mark, which no thread has counted.
const MARK: usize = 1;

impl Link {
    const_unless_loom! {
        /// A link that is in no stack.
        pub(crate) fn new() -> Self {
            Self { word: PlainPtr::new(ptr::null_mut()), tracked: Tracked::new() }
        }
    }

    /// The word, for threads that use a link for something other than an llist.
    pub(crate) const fn word(&self) -> &PlainPtr<Self> {
        &self.word
    }

    /// # Safety
    /// `link` may be written, and no other thread uses it. It may be uninitialised, except under
    /// loom.
    unsafe fn write(link: *mut Self, next: *mut Self, marks: bool) {
        let next = next.map_addr(|address| address | if marks { MARK } else { 0 });
        // SAFETY: by the contract.
        let word = unsafe { &raw mut (*link).word };
        // SAFETY: as above.
        unsafe { word.write(PlainPtr::new(next)) };
        // SAFETY: as above.
        let tracked = unsafe { &raw const (*link).tracked };
        // SAFETY: it has nothing to initialise, except under loom, where it is initialised.
        unsafe { &*tracked }.write(0);
    }

    /// The next link, and whether this one is a mark.
    ///
    /// # Safety
    /// `link` was written by [`write`](Self::write), and no thread writes it.
    unsafe fn read(link: *mut Self) -> (*mut Self, bool) {
        // SAFETY: by the contract.
        let link = unsafe { &*link };
        link.tracked.read(0);
        // Relaxed: [LN-1] has ordered it.
        let word = link.word.load(Relaxed).addr();
        // By its address alone: when `push` loaded it, another link may have been there, which has
        // been taken and freed since.
        (ptr::with_exposed_provenance_mut(word & !MARK), word & MARK != 0)
    }
}

/// What a push has found at the top.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Other links, or a thread that is awake.
    Awake,
    /// A thread that sleeps: call [`Llist::ring`].
    Asleep,
    /// There is no thread that takes links.
    Unattended,
    /// The pushed link itself: nothing has changed.
    Itself,
}

/// A stack of links, and the state of the thread that takes them.
#[derive(Debug)]
pub(crate) struct Llist {
    /// The youngest link; or null, or one of the two below.
    top: AtomicPtr<Link>,
    /// How often the bell has been rung.
    bell: AtomicU32,
}

/// The top while the thread that takes links sleeps. No link has this address: links are aligned.
const ASLEEP: *mut Link = ptr::without_provenance_mut(2);
/// The top while no thread takes links.
const UNATTENDED: *mut Link = ptr::without_provenance_mut(4);

/// The link below a top; null if the top is no link.
fn link_at(top: *mut Link) -> *mut Link {
    if top == ASLEEP || top == UNATTENDED { ptr::null_mut() } else { top }
}

impl Llist {
    const_unless_loom! {
        /// An empty stack, from which no thread takes links.
        pub(crate) fn new() -> Self {
            Self { top: AtomicPtr::new(UNATTENDED), bell: AtomicU32::new(0) }
        }
    }

    /// Pushes a link.
    ///
    /// # Safety
    /// `link` does not move, and belongs to the llist alone until it has been taken.
    #[inline]
    pub(crate) unsafe fn push(&self, link: *mut Link, marks: bool) -> Found {
        // SAFETY: the same contract.
        unsafe { self.push_meanwhile(link, marks, || ()) }
    }

    /// The same, where something may come in between: for a test.
    ///
    /// # Safety
    /// As [`push`](Self::push).
    #[inline(always)]
    unsafe fn push_meanwhile(
        &self,
        link: *mut Link,
        marks: bool,
        mut meanwhile: impl FnMut(),
    ) -> Found {
        link.expose_provenance(); // for `Link::read`
        let push = |top: *mut Link| {
            if top == link {
                return None;
            }
            // SAFETY: by the contract.
            unsafe { Link::write(link, link_at(top), marks) };
            meanwhile();
            Some(link)
        };
        // Release: pairs with the Acquire in `take` [LN-1]: what was done before the push, such as
        // writing the link, happens before the grace period is requested. Acquire: pairs with the
        // Release in `sleep` [LN-2].
        let before = fetch_update!(self.top, AcqRel, Relaxed, push); //~ relaxed-push
        match before {
            Ok(ASLEEP) => Found::Asleep,
            Ok(UNATTENDED) => Found::Unattended,
            Ok(_) => Found::Awake,
            Err(_) => Found::Itself,
        }
    }

    /// Takes all links, youngest first. The caller counts as awake from now on.
    pub(crate) fn take(&self) -> *mut Link {
        // Acquire: pairs with the Release in `push` [LN-1]. Every push is an exchange, so the
        // youngest link carries what the pushes of all links below it released.
        link_at(self.top.swap(ptr::null_mut(), Acquire))
    }

    /// Takes all links, youngest first. No thread takes links from now on.
    pub(crate) fn abandon(&self) -> *mut Link {
        link_at(self.top.swap(UNATTENDED, Acquire)) // [LN-1]
    }

    /// If the stack is empty, no thread takes links from now on. Returns whether it was empty.
    pub(crate) fn leave(&self) -> bool {
        // Relaxed: nothing was written for the threads that push later. They find that they have to
        // attend to it.
        [ptr::null_mut(), ASLEEP]
            .into_iter()
            .any(|top| self.top.compare_exchange(top, UNATTENDED, Relaxed, Relaxed).is_ok())
    }

    /// Whether the stack is empty.
    pub(crate) fn is_empty(&self) -> bool {
        link_at(self.top.load(Relaxed)).is_null()
    }

    /// How often the bell has been rung so far; for [`sleep`](Self::sleep) and
    /// [`doze`](Self::doze).
    pub(crate) fn heard(&self) -> u32 {
        // Acquire: pairs with the Release in `ring`; a thread that rings for another reason has
        // stored the reason before.
        self.bell.load(Acquire)
    }

    /// Sleeps until a link is pushed, the bell is rung after `heard`, or `most` has passed.
    pub(crate) fn sleep(&self, heard: u32, most: Option<Duration>) {
        // Release: the bell was loaded before this [LN-2]; the thread that replaces this top rings
        // after it.
        let null = ptr::null_mut();
        //~ deaf-sleep:
        let slept = self.top.compare_exchange(null, ASLEEP, Release, Relaxed).is_ok();
        if slept {
            self.doze(heard, most);
            // Awake again: threads that push from now on need not ring.
            let _ = self.top.compare_exchange(ASLEEP, ptr::null_mut(), Relaxed, Relaxed);
        }
    }

    /// Sleeps until the bell is rung after `heard`, or `most` has passed. A thread that pushes
    /// meanwhile does not ring.
    pub(crate) fn doze(&self, heard: u32, most: Option<Duration>) {
        while self.bell.load(Acquire) == heard {
            futex::wait(&self.bell, heard, most);
            if most.is_some() {
                return;
            }
        }
    }

    /// Wakes the thread that takes links. What that thread must know was stored before.
    pub(crate) fn ring(&self) {
        //~ no-bell
        // Release: pairs with the Acquire in `heard`.
        self.bell.fetch_add(1, Release);
        futex::wake_all(&self.bell);
    }
}

/// A link was pushed while it was in the stack already: this one, or one near it. So the order of
/// the links is lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ring(pub(crate) *mut Link);

/// Links that were taken, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Chain {
    first: *mut Link,
    last: *mut Link,
    /// All of them.
    links: u64,
    /// All that are no marks.
    count: u64,
}

// SAFETY: links belong to the thread that has taken them, on whatever thread.
unsafe impl Send for Chain {}

impl Chain {
    /// No links.
    pub(crate) const EMPTY: Self =
        Self { first: ptr::null_mut(), last: ptr::null_mut(), links: 0, count: 0 };

    /// How many links there are.
    pub(crate) const fn links(&self) -> u64 {
        self.links
    }

    /// How many links there are, without marks.
    pub(crate) const fn count(&self) -> u64 {
        self.count
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.first.is_null()
    }

    /// Appends what was taken from an llist. If a link was pushed twice, the links form a ring:
    /// reversing it ends where it began.
    ///
    /// # Safety
    /// `youngest` is what [`Llist::take`] has returned.
    pub(crate) unsafe fn append(&mut self, youngest: *mut Link) -> Result<(), Ring> {
        let (mut next, mut older, mut links) = (ptr::null_mut(), youngest, 0_u64);
        while !older.is_null() {
            links += 1;
            let link = older;
            // SAFETY: taken, and so written by `push`.
            let (below, marks) = unsafe { Link::read(link) };
            // SAFETY: taken: ours.
            unsafe { Link::write(link, next, marks) };
            self.count += u64::from(!marks);
            (next, older) = (link, below);
        }
        if next.is_null() {
            return Ok(());
        }
        if links > 1 && next == youngest {
            return Err(Ring(youngest));
        }
        if self.is_empty() {
            self.first = next;
        } else {
            // SAFETY: ours, and written.
            let (_, marks) = unsafe { Link::read(self.last) };
            // SAFETY: ours.
            unsafe { Link::write(self.last, next, marks) };
        }
        self.last = youngest;
        self.links += links;
        Ok(())
    }

    /// Takes the oldest link. Returns it, and whether it is a mark.
    pub(crate) fn pop(&mut self) -> Option<(*mut Link, bool)> {
        if self.is_empty() {
            return None;
        }
        let link = self.first;
        // SAFETY: ours, and written.
        let (next, marks) = unsafe { Link::read(link) };
        self.first = next;
        self.links = self.links.saturating_sub(1);
        self.count = self.count.saturating_sub(u64::from(!marks));
        Some((link, marks))
    }

    /// Calls `f` with the address of each link that is no mark.
    pub(crate) fn for_each(&self, mut f: impl FnMut(usize)) {
        let mut link = self.first;
        while !link.is_null() {
            // SAFETY: ours, and written.
            let (next, marks) = unsafe { Link::read(link) };
            if !marks {
                f(link.addr());
            }
            link = next;
        }
    }

    /// Takes the `most` oldest links, or all, but none behind the first mark. If a link was pushed
    /// while it was in this chain, it leads elsewhere now, and the count is wrong.
    pub(crate) fn split(&mut self, most: u64) -> Result<Self, Ring> {
        if most == 0 {
            return Ok(Self::EMPTY);
        }
        let mut front = Self { first: self.first, ..Self::EMPTY };
        let mut link = self.first;
        while !link.is_null() && front.links < most {
            // SAFETY: ours, and written.
            let (next, marks) = unsafe { Link::read(link) };
            front.links += 1;
            front.count += u64::from(!marks);
            (front.last, link) = (link, next);
            //~ late-barrier:
            if marks {
                break; // [L-5]
            }
        }
        let left = self.count.checked_sub(front.count);
        let Some(left) = left.filter(|left| *left == 0 || !link.is_null()) else {
            return Err(Ring(self.first));
        };
        if !front.last.is_null() {
            // SAFETY: ours, and written.
            let (_, marks) = unsafe { Link::read(front.last) };
            // SAFETY: ours.
            unsafe { Link::write(front.last, ptr::null_mut(), marks) };
        }
        (self.first, self.count) = (link, left);
        self.links = self.links.saturating_sub(front.links);
        Ok(front)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::sync::array_of;

    /// Pushes so many new links; every third is a mark.
    fn push(llist: &Llist, links: &mut Vec<*mut Link>, count: usize) {
        for _ in 0..count {
            let link = Box::into_raw(Box::new(Link::new()));
            // SAFETY: a box, freed by `pop_all`.
            unsafe { llist.push(link, links.len() % 3 == 2) };
            links.push(link);
        }
    }

    fn pop_all(mut chain: Chain) -> Vec<(*mut Link, bool)> {
        let popped: Vec<_> = std::iter::from_fn(|| chain.pop()).collect();
        assert_eq!(chain.count(), 0);
        for (link, _) in &popped {
            // SAFETY: from a box, in `push`.
            drop(unsafe { Box::from_raw(*link) });
        }
        popped
    }

    #[test]
    fn what_is_pushed_is_taken_in_order() {
        for (first, second, split) in
            [(0, 0, 1), (1, 0, 1), (5, 4, 3), (5, 4, 9), (2, 7, 100), (3, 2, 0)]
        {
            let (llist, mut links, mut chain) = (Llist::new(), Vec::new(), Chain::EMPTY);
            push(&llist, &mut links, first);
            // SAFETY: taken just now.
            unsafe { chain.append(llist.take()) }.unwrap();
            push(&llist, &mut links, second);
            // SAFETY: as above.
            unsafe { chain.append(llist.take()) }.unwrap();
            let marks = links.len() / 3;
            assert_eq!(chain.count() as usize, links.len() - marks);
            let front = chain.split(split).unwrap();
            let taken: Vec<_> = [front, chain].map(pop_all).concat();
            let expected = links.iter().enumerate().map(|(index, link)| (*link, index % 3 == 2));
            assert!(taken.into_iter().eq(expected));
        }
    }

    /// A past error: the new link led there by a pointer to the freed one, as Miri tells.
    #[test]
    fn a_push_above_a_link_that_is_freed_meanwhile_leads_to_the_one_at_its_address() {
        let (llist, mut chain) = (Llist::new(), Chain::EMPTY);
        let new = || Box::into_raw(Box::new(Link::new()));
        // SAFETY: a link of a box, which is given away.
        let push = |link| unsafe { llist.push(link, false) };
        push(new());
        let replace = || {
            let old = llist.take();
            // SAFETY: from a box, and taken.
            drop(unsafe { Box::from_raw(old) });
            let mut others: Vec<_> = (0..100).map(|_| Box::new(Link::new())).collect();
            let same = others.iter().position(|link| ptr::eq(&raw const **link, old));
            push(Box::into_raw(others.swap_remove(same.unwrap_or(0))));
        };
        let upper = new();
        // SAFETY: as above.
        unsafe { llist.push_meanwhile(upper, false, replace) };
        // SAFETY: taken just now.
        unsafe { chain.append(llist.take()) }.unwrap();
        assert_eq!(pop_all(chain).last(), Some(&(upper, false)));
    }

    #[test]
    fn a_push_says_what_it_has_found() {
        let (llist, mut links) = (Llist::new(), array_of![Link::new(); 2]);
        let [first, second] = links.each_mut().map(ptr::from_mut);
        // SAFETY: pushed while it does not wait; or refused.
        let push = |link| unsafe { llist.push(link, false) };
        assert_eq!(push(first), Found::Unattended);
        assert_eq!(push(first), Found::Itself);
        assert_eq!(push(second), Found::Awake);
        assert!(!llist.leave() && !llist.is_empty());
        assert_eq!(llist.take(), second);
        assert_eq!(push(first), Found::Awake);
        assert_eq!(llist.abandon(), first);
        assert_eq!(push(first), Found::Unattended);
        llist.take();
        assert!(llist.leave() && !llist.leave() && llist.is_empty());
    }

    /// A link that is pushed again while others are on top of it: a ring, which no thread walks for
    /// ever.
    #[test]
    fn a_ring_is_noticed() {
        let (llist, mut links) = (Llist::new(), array_of![Link::new(); 2]);
        let [first, second] = links.each_mut().map(ptr::from_mut);
        for link in [first, second, first] {
            // SAFETY: not at all; that it is noticed is what is tested.
            unsafe { llist.push(link, false) };
        }
        let mut chain = Chain::EMPTY;
        // SAFETY: taken just now.
        assert!(unsafe { chain.append(llist.take()) }.is_err() && chain.is_empty());
    }

    /// A link that is pushed again after it was taken: what came behind it is out of reach.
    #[test]
    fn a_chain_that_is_torn_is_noticed() {
        let (llist, mut links) = (Llist::new(), array_of![Link::new(); 3]);
        let mut chain = Chain::EMPTY;
        let links = links.each_mut().map(ptr::from_mut);
        for link in links {
            // SAFETY: does not wait.
            unsafe { llist.push(link, false) };
        }
        // SAFETY: taken just now.
        unsafe { chain.append(llist.take()) }.unwrap();
        // SAFETY: not at all; that it is noticed is what is tested.
        unsafe { llist.push(links[1], false) };
        assert!(chain.split(3).is_err());
    }
}
