//! Steps that are left out or weakened, and what comes of each.

use crate::harness;

/// A step that is left out or weakened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mutant {
    /// A dead slot is free at the next lock.
    NoCookie,
    /// The cookie is taken before the dead byte is stored.
    EarlyCookie,
    /// A slot that dies is added to those that have a cookie already.
    SharedCookie,
    /// The grace period in progress is enough.
    CookieOfThePresent,
    /// No fence comes between the lock and the cookie.
    NoCookieFence,
    /// The cookie is polled by a relaxed load.
    RelaxedPoll,
    /// The tag is stored before key and value.
    TagBeforeKey,
    /// The tag word is stored with relaxed order.
    RelaxedTag,
    /// The reader loads the tag word with relaxed order.
    RelaxedTagLoad,
    /// A replaced entry's byte is dead before the tag of the new one is there.
    DeadFirst,
    /// The reader does not load the overflow word again.
    NoRecheck,
    /// It does not after the tag word.
    NoFirstRecheck,
    /// It does not after the node.
    NoSecondRecheck,
    /// It takes a cookie in the overflow word for "there is no node".
    CookieIsAbsence,
    /// The overflow node is published after the entry in the head is dead.
    OverflowLate,
    /// It is published with relaxed order.
    RelaxedOverflow,
    /// The reader loads the overflow word with relaxed order.
    RelaxedOverflowLoad,
    /// What moves to the node from the head is added in place.
    MovedInPlace,
    /// An entry of the node is dead there before the head has it.
    FoldByHalves,
    /// The tag word of a node is stored with relaxed order.
    RelaxedNodeTag,
    /// The node goes before the head has its entries.
    FoldOverflowFirst,
    /// The flag of a bucket that has moved is stored before the copy.
    MovedBeforeCopy,
    /// It is stored with relaxed order.
    RelaxedMoved,
    /// The lock is taken with relaxed order.
    RelaxedLock,
    /// Boxed: the pointer is stored before the tag.
    PointerFirst,
    /// Boxed: the pointer is stored with relaxed order.
    RelaxedPointer,
    /// Boxed: the pointer of a removed entry stays.
    NoNull,
    /// Boxed: a slot's byte is free before its pointer is null.
    FreeFirst,
}

/// What is known about a mutant.
pub type Fault = harness::Fault<Mutant>;

harness::faults! {
    NoCookie Unsafe Both "refilled" "a reference out of the slot sees the next entry";
    EarlyCookie Unsafe Both "refilled" "a reader that the grace period passed over finds the tag";
    SharedCookie Unsafe Both "refilled-twice" "the same, of the slot that died later";
    CookieOfThePresent Unsafe Both "refilled"
        "its fence was executed before the byte was dead";
    NoCookieFence Unsafe WeakOnly "refilled"
        "the grace period has begun, unseen, and its fence was executed before the byte was dead";
    RelaxedPoll Unsafe WeakOnly "refilled" "nothing orders a read before the write";
    TagBeforeKey Unsafe Both "refilled" "a key that is not there yet is compared";
    RelaxedTag Unsafe WeakOnly "folded" "a key that has moved is compared before it is there";
    RelaxedTagLoad Unsafe WeakOnly "refilled" "a key that is not there yet is compared";
    DeadFirst Unsafe Both "refilled" "between the two stores the key is in neither slot";
    NoRecheck Unsafe Both "same-tags-again"
        "the key came into another node before the tag word was loaded";
    NoFirstRecheck Harmless Neither "copied" "the second one sees it";
    NoSecondRecheck Harmless Neither "copied"
        "what was in the node with the tag word is there, or was removed since";
    CookieIsAbsence Unsafe Both "folded" "the key is in the head by then";
    OverflowLate Unsafe Both "overflow" "the key is in neither";
    RelaxedOverflow Unsafe WeakOnly "copied" "the node is searched before its words are there";
    RelaxedOverflowLoad Unsafe WeakOnly "copied" "the same";
    MovedInPlace Harmless Neither "same-tags-again"
        "the node has the key before the tag word says that the head has it no more";
    FoldByHalves Unsafe Both "folded" "the key is in neither";
    RelaxedNodeTag Unsafe WeakOnly "in-place" "the tag is there before the key";
    FoldOverflowFirst Harmless Neither "folded"
        "a reader that finds the cookie tries again until the tag word is stored";
    MovedBeforeCopy Unsafe Both "grown" "the child is empty";
    RelaxedMoved Unsafe WeakOnly "grown" "the same";
    RelaxedLock Unsafe WeakOnly "two-updaters" "an entry is copied before it is there";
    PointerFirst Unsafe Both "boxed"
        "a reader with an old tag word finds the entry, one that comes later does not";
    RelaxedPointer Unsafe WeakOnly "boxed" "what is behind the pointer is not there";
    NoNull Unsafe Both "boxed" "under the tag of the next entry the removed one is found";
    FreeFirst Harmless Neither "boxed"
        "who finds the entry had its tag word before, so that its look-up began before the removal";
}
