//! How a [`List`] is read: [`ListRef`], and [`Iter`].

use std::fmt;
use std::iter::FusedIterator;

use super::chain::{Node, follow};
use super::public::List;
use crate::collections::impls::{iterated, shown_as_all, view};
use crate::domain::guard::Global;
use crate::domain::tag::{DomainTag, Section};
use crate::os::sync::AtomicPtr;

/// A list that is being read, together with the section that protects its elements: returned by
/// [`List::read`]. It is a [`Section`] of the list's domain, so other values can be read with it,
/// and dereferences to the [`List`].
#[must_use = "the section ends when this is dropped"]
pub struct ListRef<'l, T: Send + Sync + 'static, D: DomainTag = Global> {
    pub(super) list: &'l List<T, D>,
    pub(super) section: D::Section<'l>,
}

impl<'l, T: Send + Sync + 'static, D: DomainTag> ListRef<'l, T, D> {
    /// Iterates over the elements, from first to last. See [`List::iter`].
    #[inline]
    pub fn iter(&self) -> Iter<'_, T> {
        self.list.iter(&self.section)
    }

    /// The first element.
    pub fn front(&self) -> Option<&T> {
        self.iter().next()
    }
}

view!(
    [T: Send + Sync + 'static, D: DomainTag] ListRef<'_, T, D>, list: List<T, D>,
    section: Section<D>
);

iterated!(
    ['r, T: Send + Sync + 'static, D: DomainTag] &'r ListRef<'_, T, D>, &'r T, Iter<'r, T>
);

shown_as_all!(
    [T: Send + Sync + fmt::Debug + 'static, D: DomainTag] ListRef<'_, T, D>, debug_list,
    |list| list
);

/// The elements of a [`List`], in its order: returned by [`List::iter`].
pub struct Iter<'s, T> {
    /// Where the next element is found. `None` after the last.
    link: Option<&'s AtomicPtr<Node<T>>>,
}

impl<'s, T> Iter<'s, T> {
    /// # Safety
    /// As long as `'s` lasts, there is either a section of the list's domain, or no other thread
    /// changes the list; and elements are freed a grace period after they were removed.
    pub(super) unsafe fn new(link: &'s AtomicPtr<Node<T>>) -> Self {
        Self { link: Some(link) }
    }
}

impl<'s, T> Iterator for Iter<'s, T> {
    type Item = &'s T;

    #[inline]
    fn next(&mut self) -> Option<&'s T> {
        // SAFETY: found in the section, by links of elements that were found in it; so it is valid
        // as long as the section.
        let node = unsafe { follow(self.link?).as_ref() };
        self.link = node.map(|node| &node.next);
        node.map(|node| &node.value)
    }
}

impl<T> FusedIterator for Iter<'_, T> {}

impl<T> Clone for Iter<'_, T> {
    fn clone(&self) -> Self {
        Self { link: self.link }
    }
}

shown_as_all!([T: fmt::Debug] Iter<'_, T>, debug_list, |rest| rest.clone());
